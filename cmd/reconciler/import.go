package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-1c4f4dc2/reconciler/config"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

type importFlags struct{ source, from, to string }

func newImportCommand(a *app) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import --source S FILE...",
		Short: "Bring export files of a provider into the ledger: what they say of its effects",
		Long: "Reads files in the format of the source (docs/files.md) and stores the effects that they tell of. Each file is taken whole or, " +
			"where something is wrong with the file itself, not at all. Rows that cannot be read for sure are refused alone, with their line; " +
			"rows that are not ours are set aside. A file that was imported before changes nothing.\n" +
			"Operations on which the rows bear are due at once: `reconciler sweep` and `reconciler reverify` conclude them. FILE - is standard input.",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return misuse("%s needs a file", cmd.CommandPath())
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&f.source, "source", "", "the source whose files they are")
	cmd.Flags().StringVar(&f.from, "from", "", "the files hold all that was created from this instant, or the start of this day")
	cmd.Flags().StringVar(&f.to, "to", "", "and before this instant, or up to the end of this day; with --from, what they do not tell of is then known not to be there")
	cmd.RunE = a.verb(func(ctx context.Context, args []string) error { return a.importFiles(ctx, f, args) })
	return cmd
}

// imported is the answer for one file, and the sums of several.
type imported struct {
	File string `json:"file,omitempty"`
	ledger.ImportResult
	Aside map[string]int `json:"set_aside_reasons"` // why rows were set aside, and how many
	Notes []files.Note   `json:"notes"`
	Files []imported     `json:"files,omitempty"` // of several
	fault bool           // of the file: standard error tells it
}

func (a *app) importFiles(ctx context.Context, f importFlags, names []string) error {
	c, err := a.needed("import", config.FindUnread)
	if err != nil {
		return err
	}
	if f.source == "" {
		return misuse("import needs --source: whose files are they?")
	}
	chosen, err := chooseSources(c, []string{f.source})
	if err != nil {
		return err
	}
	p := importPlan(c, chosen[0])
	if err := p.declare(c, chosen[0], f); err != nil {
		return err
	}
	if err := a.readable(names); err != nil {
		return err
	}
	return a.withLedger(ctx, func(l *ledger.Ledger) error {
		var all []imported
		var failures []error
		for i, name := range names {
			last := i == len(names)-1
			r, err := a.importFile(ctx, l, p.of(last, all), name)
			if err != nil && !r.fault {
				return errors.Join(append(failures, fmt.Errorf("%s: %w", name, err))...)
			}
			if last {
				r.Notes = append(r.Notes, p.covered(c, append(all, r))...)
			}
			if all = append(all, r); err == nil && r.Imported == 0 && r.Repeated == 0 {
				err = fmt.Errorf("%s: nothing was imported", name)
			}
			failures = append(failures, err)
		}
		text := func(w io.Writer) error { return writeAllImported(w, all) }
		return errors.Join(append(failures, a.print(together(all), text))...)
	})
}

// readable tells a name that cannot be read before any file is: it must not be found out half
// way. A pipe is opened once only, when it is its turn: whoever writes into it would take its
// closing for the end.
func (a *app) readable(names []string) error {
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
			continue
		}
		in, _, err := a.input([]string{name})
		if err != nil {
			return err
		}
		in.Close()
	}
	return nil
}

// plan is how the files of one source are brought in.
type plan struct {
	format   files.Format
	readable bool // a source of the same system can be asked
	complete ledger.Completeness
}

// declare takes what the flags say that the files hold completely.
func (p *plan) declare(c *config.Config, s config.Source, f importFlags) error {
	if f.from == "" && f.to == "" {
		return nil
	}
	w := &p.complete.Window
	var err error
	if w.From, err = parseInstant("from", f.from, c.Zone, dayStart); err != nil {
		return err
	}
	if w.To, err = parseInstant("to", f.to, c.Zone, dayEnd); err != nil {
		return err
	}
	kinds := p.format.Kinds
	if len(kinds) == 0 {
		kinds = s.Sheet.Kinds
	}
	look, _ := s.Sheet.Ability(recon.ByFile)
	switch {
	case f.from == "" || f.to == "" || !w.From.Before(w.To):
		return misuse("--from and --to: write both ends of the range that the files hold completely, the earlier one first")
	case look.Consistency != recon.Strong && s.Kind != "files":
		return misuse("--from and --to: %s is asked itself, and the silence of its exports proves nothing; leave both out", s.Name)
	case look.Consistency != recon.Strong:
		return misuse("--from and --to: the silence of an export of %s proves nothing; write in its settings how late an export can be (`lag`)", s.Name)
	case len(s.Sheet.Accounts) == 0:
		return misuse("--from and --to: nobody knows of which account the files are complete; write in the settings of %s whose they are (`account: default` where the provider names none)", s.Name)
	case len(kinds) == 0:
		return misuse("--from and --to: nobody knows of which kinds the files are complete; write in the settings of %s the `kind` of their rows", s.Name)
	}
	for _, kind := range kinds {
		for _, a := range s.Sheet.Accounts {
			p.complete.Places = append(p.complete.Places, ledger.Place{Kind: kind, Account: a.Account, Mode: a.Mode})
		}
	}
	return nil
}

// of is the plan for one file. Only all files together are complete, so the last one
// says it, where every row before it could be read.
func (p plan) of(last bool, before []imported) plan {
	if !last || anyRefused(before) {
		p.complete = ledger.Completeness{}
	}
	return p
}

func anyRefused(all []imported) bool {
	return slices.ContainsFunc(all, func(r imported) bool { return r.fault || r.Refused > 0 })
}

// covered says what became of the range that the files were to hold completely.
func (p plan) covered(c *config.Config, all []imported) []files.Note {
	w := p.complete.Window
	if w.IsZero() {
		return nil
	}
	span := fmt.Sprintf("%s to %s", recon.TimeText(w.From, c.Zone), recon.TimeText(w.To, c.Zone))
	if anyRefused(all) {
		return []files.Note{{Text: span + " does not count as seen completely, because not every row could be read"}}
	}
	return []files.Note{{Text: span + " counts as seen completely: what was not in the files was not there"}}
}

// importPlan joins what the configuration says of a source's system: who else names it,
// who can be asked, and which kinds of effects actions make.
func importPlan(c *config.Config, s config.Source) plan {
	p := plan{format: s.Format}
	for _, other := range c.Sources {
		if other.Sheet.System != s.Sheet.System {
			continue
		}
		if _, can := other.Sheet.Ability(recon.ByID); can {
			p.readable = true
		}
		if other.Name != s.Name {
			p.format.Siblings = append(p.format.Siblings, other.Name)
		}
	}
	for _, policy := range c.Policies {
		if policy.System == s.Sheet.System && !slices.Contains(p.format.Kinds, policy.Effect) {
			p.format.Kinds = append(p.format.Kinds, policy.Effect)
		}
	}
	return p
}

func (a *app) importFile(ctx context.Context, l *ledger.Ledger, p plan, name string) (imported, error) {
	in, name, err := a.input([]string{name})
	if err != nil {
		return imported{}, err
	}
	defer in.Close()
	now, err := l.Now(ctx)
	if err != nil {
		return imported{}, err
	}
	var bytes io.Reader = in
	if f, ok := in.(*os.File); ok {
		screen := a.reading("reading "+filepath.Base(name), "storing", f)
		defer screen.end()
		bytes = screen.reader(f)
	}
	rows := newImportRows(p.format, bytes, name)
	r, err := l.ImportEffects(ctx, ledger.EffectImport{
		Source: p.format.Source, System: p.format.System, Sources: p.format.Siblings, File: rows, Name: filepath.Base(name), Hash: rows.sum, Readable: p.readable, Complete: p.complete, Now: now,
	})
	out := imported{File: name, ImportResult: r, Aside: rows.aside, Notes: append([]files.Note{}, rows.reader.Notes()...)}
	out.Encoding = rows.reader.Encoding()
	if fault, ok := errors.AsType[*files.Fault](err); ok {
		out.fault = true
		out.Faults = []ledger.ImportFault{{Line: fault.Line, Reason: fault.Problem}}
		err = fmt.Errorf("%w; nothing of the file was imported", err)
	}
	return out, err
}

// importRows gives the rows of a file to the ledger.
type importRows struct {
	name   string
	reader *files.Reader
	twins  *files.Twins
	row    files.Row
	hash   hash.Hash
	aside  map[string]int
	err    error
}

// maxAside bounds the reasons that are told apart.
const maxAside = 20

func newImportRows(f files.Format, in io.Reader, name string) *importRows {
	h := sha256.New()
	return &importRows{
		name: name, reader: files.Open(f, io.TeeReader(in, h), name), twins: files.NewTwins(), hash: h, aside: map[string]int{},
	}
}

// Next implements ledger.EffectFile.
func (r *importRows) Next(line *ledger.EffectLine) bool {
	if r.err != nil || !r.reader.Next(&r.row) {
		return false
	}
	*line = ledger.EffectLine{Line: r.row.Line}
	switch r.row.Outcome {
	case files.Refused:
		line.Refused = r.row.Reason
	case files.SetAside:
		line.SetAside = true
		if _, known := r.aside[r.row.Reason]; known || len(r.aside) < maxAside {
			r.aside[r.row.Reason]++
		}
	default:
		line.Effect = r.row.Effect
		line.Again, r.err = r.twins.Meet(&r.row)
	}
	if fault, ok := errors.AsType[*files.Fault](r.err); ok {
		fault.File = r.name
	}
	return r.err == nil
}

// Err implements ledger.EffectFile.
func (r *importRows) Err() error {
	if r.err != nil {
		return r.err
	}
	return r.reader.Err()
}

func (r *importRows) sum() []byte { return r.hash.Sum(nil) }

// together is the one document of an answer: that of the only file, or the sums of all.
func together(all []imported) imported {
	if len(all) == 1 {
		one := all[0]
		one.File = ""
		return one
	}
	sum := imported{ImportResult: ledger.ImportResult{Faults: []ledger.ImportFault{}}, Aside: map[string]int{}, Notes: []files.Note{}, Files: all}
	for i, r := range all {
		sum.Rows, sum.Imported, sum.Repeated = sum.Rows+r.Rows, sum.Imported+r.Imported, sum.Repeated+r.Repeated
		sum.SetAside, sum.Refused = sum.SetAside+r.SetAside, sum.Refused+r.Refused
		if sum.Encoding = r.Encoding; i > 0 && r.Encoding != all[0].Encoding {
			sum.Encoding = "mixed"
		}
		for _, f := range r.Faults {
			f.File = r.File
			sum.Faults = append(sum.Faults, f)
		}
		for why, n := range r.Aside {
			sum.Aside[why] += n
		}
	}
	return sum
}

func writeAllImported(w io.Writer, all []imported) error {
	for _, r := range all {
		if r.fault {
			continue
		}
		if err := writeImported(w, r.File, r.ImportResult); err != nil {
			return err
		}
		for _, why := range slices.Sorted(maps.Keys(r.Aside)) {
			if _, err := fmt.Fprintf(w, "  set aside: %s: %s\n", count(r.Aside[why], "row"), recon.Printable(why)); err != nil {
				return err
			}
		}
		if err := writeNotes(w, r.Notes); err != nil {
			return err
		}
	}
	return nil
}
