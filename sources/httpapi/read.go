package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

var errGone = errors.New("is not there; the provider's format is not the one that is configured")

// maxText bounds every text that is kept.
const maxText = 1024

// reader reads one object and keeps its first fault.
type reader struct {
	k     *kind
	v     any
	whole bool // nothing that by_id shows is missing
	raw   map[string]string
	err   error
}

func (r *reader) fault(name string, err error) {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("%s: %w", name, err)
	}
}

// text gives a field's text and keeps it for the raw bytes.
func (r *reader) text(name string, p Path) string {
	s, err := p.text(r.v)
	if err == nil && (len(s) > maxText || strings.ContainsRune(s, 0)) {
		err = errors.New("the text is too long or holds a NUL")
	}
	r.fault(name, err)
	if s != "" {
		r.raw[name] = s
	}
	return s
}

// need is text that every object has.
func (r *reader) need(name string, p Path) string {
	s := r.text(name, p)
	if s == "" {
		r.fault(name, errGone)
	}
	return s
}

func (r *reader) time(name, s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	at, err := r.k.dates.read(s)
	r.fault(name, err)
	return at
}

// read makes an effect of an object. ok is false for one that is none of the kind. The
// error says what is not as configured; it never quotes what the object holds.
func (k *kind) read(v any, at recon.Account, whole bool) (s sources.Sighting, ok bool, kind sources.Kind, err error) {
	if _, object := v.(map[string]any); !object {
		return sources.Sighting{}, false, sources.Malformed, errors.New("what should be an object is none")
	}
	for name, only := range k.only {
		// One that is gone tells nothing of whether the object is ours.
		if _, there, err := only.path.find(v); err != nil || !there {
			return sources.Sighting{}, false, sources.Malformed, fmt.Errorf("%s: %w", name, errGone)
		}
		if text, err := only.path.text(v); err != nil || text != only.text {
			return sources.Sighting{}, false, "", nil
		}
	}
	r := &reader{k: k, v: v, whole: whole || !k.summary, raw: map[string]string{}}
	for name, p := range k.required {
		if _, there, err := p.find(v); err != nil || !there {
			r.fault(name, errGone)
		}
	}
	e := r.effect(at)
	if r.err != nil {
		return sources.Sighting{}, false, sources.Malformed, r.err
	}
	if shown := r.place(at); shown != at {
		return sources.Sighting{}, false, sources.WrongAccount, errors.New("the object is of another account or mode; check which one the credentials open")
	}
	raw, err := json.Marshal(r.raw)
	if err != nil {
		return sources.Sighting{}, false, sources.Malformed, errors.New("the object cannot be written back")
	}
	return sources.Sighting{Effect: e, Raw: bytes.TrimSpace(raw)}, true, "", nil
}

func (r *reader) effect(at recon.Account) recon.Effect {
	f := &r.k.fields
	e := recon.Effect{
		ID: r.need("id", f.id), Kind: r.k.name, Account: at.Account, Mode: at.Mode,
		CreatedAt:        r.time("created_at", r.need("created_at", f.createdAt)),
		UpdatedAt:        r.time("updated_at", r.text("updated_at", f.updatedAt)),
		Parent:           r.text("parent", f.parent),
		Reference:        r.text("reference", f.reference),
		Key:              r.text("key", f.key),
		NaturalReference: r.text("natural_reference", f.natural),
		Target:           r.text("target", f.target),
		FailureReason:    r.text("failure_reason", f.failureReason),
		CreatedBy:        r.text("created_by", f.createdBy),
	}
	if len(f.targetHash) > 0 {
		e.Target = r.targetHash(f.targetHash)
	}
	if !r.k.sparse {
		// Without what encloses our marks every effect would seem to be somebody else's.
		r.present("reference", f.reference[:min(1, len(f.reference))])
		r.present("key", f.key[:min(1, len(f.key))])
	}
	r.present("amount", f.amount)
	r.present("currency", f.currency)
	money, err := r.k.words.Money(r.text("amount", f.amount), r.text("currency", f.currency))
	r.fault("amount", err)
	e.Money = money
	e.Status = r.status()
	return e
}

// present demands a field that is configured. Null is "not known"; a field that is gone
// would silently no longer be compared.
func (r *reader) present(name string, p Path) {
	if len(p) == 0 {
		return
	}
	if _, there, err := p.find(r.v); err == nil && !there {
		r.fault(name, errGone)
	}
}

func (r *reader) place(at recon.Account) recon.Account {
	f := &r.k.fields
	if account := r.text("account", f.account); account != "" {
		at.Account = account
	}
	if f.mode != nil {
		at.Mode = r.k.words.Modes[r.need("mode", f.mode)] // a word without meaning is no mode of ours
	}
	return at
}

func (r *reader) status() recon.EffectStatus {
	status := recon.Completed
	if r.k.fields.status != nil {
		var err error
		status, err = r.k.words.StatusOf(r.need("status", r.k.fields.status))
		r.fault("status", err)
	}
	if r.k.log == nil {
		return status
	}
	list, there, err := r.k.log.items.find(r.v)
	if err == nil && !there && r.whole {
		err = errGone
	}
	if err != nil || !there {
		r.fault("log", err)
		return status
	}
	events, err := r.k.log.read(list, r.k.dates)
	r.fault("log", err)
	return decideByLog(status, events)
}

func (r *reader) targetHash(paths []Path) string {
	parts := make([]string, len(paths))
	for i, p := range paths {
		v, there, err := p.find(r.v)
		if err == nil && !there {
			err = errGone
		}
		if err == nil {
			parts[i], err = joined(v)
		}
		r.fault("target_hash", err)
	}
	return HashTarget(parts...)
}

// joined gives the text of a field, or of a list of texts in an order of its own.
func joined(v any) (string, error) {
	list, ok := v.([]any)
	if !ok {
		return textOf(v)
	}
	texts := make([]string, len(list))
	for i, entry := range list {
		text, err := textOf(entry)
		if err != nil {
			return "", err
		}
		texts[i] = clean(text)
	}
	slices.Sort(texts)
	return strings.Join(texts, ","), nil
}

func clean(s string) string { return strings.ToLower(strings.TrimSpace(s)) }

// HashTarget makes a target of texts that are personal, such as a recipient's address and
// a subject: "sha256:" and the hash, in hexadecimal, of the texts joined by line feeds,
// each without white space around it and in lower case. Several recipients are one text:
// sorted and joined by commas. Who opens the operation makes its target the same way.
func HashTarget(parts ...string) string {
	cleaned := make([]string, len(parts))
	for i, p := range parts {
		cleaned[i] = clean(p)
	}
	sum := sha256.Sum256([]byte(strings.Join(cleaned, "\n")))
	return "sha256:" + hex.EncodeToString(sum[:])
}
