package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/guard"
	"github.com/seed-1c4f4dc2/reconciler/ledger"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

const (
	maxToken     = 4 << 10
	statusWithin = 5 * time.Second
)

// standing is how an operation stands, for agents: never its request, nor anything raw.
type standing struct {
	OperationID recon.OperationID `json:"operation_id"`
	State       recon.State       `json:"state"`
	Verdict     string            `json:"verdict"`
	Final       bool              `json:"final"`
	Note        string            `json:"note"`
}

func standingOf(o recon.Operation) standing {
	s := ledger.StandingOf(o.State)
	note := s.Note
	if note == "" {
		note = guard.Words(guard.Verdict(s.Verdict), s.Final)
	}
	return standing{OperationID: o.ID, State: o.State, Verdict: s.Verdict, Final: s.Final, Note: note}
}

// status answers for one operation.
func (d *daemon) status(w http.ResponseWriter, r *http.Request, l *ledger.Ledger) error {
	o, err := l.Operation(r.Context(), recon.OperationID(r.PathValue("id")))
	if err != nil {
		return err
	}
	respond(w, http.StatusOK, standingOf(o))
	return nil
}

// statusList answers for all operations with a key, which are several only where several
// sources use it, or with a reference.
func (d *daemon) statusList(w http.ResponseWriter, r *http.Request, l *ledger.Ledger) error {
	query := r.URL.Query()
	f := ledger.OperationFilter{Key: query.Get("key"), Reference: query.Get("reference")}
	if (f.Key == "") == (f.Reference == "") || len(query) != 1 {
		respond(w, http.StatusBadRequest, problem{"give either key or reference"})
		return nil
	}
	ops, err := l.Operations(r.Context(), f)
	if err != nil {
		return err
	}
	list := make([]standing, 0, len(ops))
	for _, o := range ops {
		list = append(list, standingOf(o))
	}
	respond(w, http.StatusOK, list)
	return nil
}

// asker answers a question whose token was right.
type asker func(http.ResponseWriter, *http.Request, *ledger.Ledger) error

// withToken lets only holders of the token in. Without a configured token nobody is.
func (d *daemon) withToken(ask asker) http.Handler {
	file := d.Config.Listen.TokenFile
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if file == "" {
			respond(w, http.StatusNotFound, problem{"the status of operations is not served: set listen.token_file"})
			return
		}
		// Read at every request, so that a token is changed without a restart.
		token, err := readToken(file)
		if err != nil {
			d.Log.Error("the status of operations cannot be served", "error", err.Error())
			respond(w, http.StatusServiceUnavailable, problem{"the token file cannot be read"})
			return
		}
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		want, got := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(given))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(want[:], got[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			respond(w, http.StatusUnauthorized, problem{"give the token of listen.token_file as: Authorization: Bearer …"})
			return
		}
		l := d.ledger.Load()
		if l == nil {
			respond(w, http.StatusServiceUnavailable, problem{"starting: the database has not answered yet"})
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), statusWithin)
		defer cancel()
		d.answerFault(w, ask(w, r.WithContext(ctx), l))
	})
}

// answerFault answers where the question could not be.
func (d *daemon) answerFault(w http.ResponseWriter, err error) {
	var missing *ledger.NotFoundError
	switch {
	case err == nil:
	case errors.As(err, &missing):
		respond(w, http.StatusNotFound, problem{missing.Error()})
	default:
		d.Log.Warn("the status of an operation cannot be read", "error", err.Error())
		respond(w, http.StatusServiceUnavailable, problem{"the ledger cannot be read now: hold, and ask again"})
	}
}

type problem struct {
	Error string `json:"error"`
}

func respond(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever asked is gone, and there is nobody else to tell
}

// readToken reads the token that the configuration found in its place when it was read.
func readToken(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("listen.token_file: %w; write the token of the status answers there, or leave the key out", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxToken))
	if err != nil {
		return "", fmt.Errorf("listen.token_file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", fmt.Errorf("listen.token_file: %s is empty; write the token of the status answers there, or leave the key out", file)
	}
	return token, nil
}
