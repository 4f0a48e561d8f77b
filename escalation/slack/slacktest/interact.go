package slacktest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	triggerLife = 3 * time.Second
	hookUses    = 5
)

// Person is a user of a workspace.
type Person struct{ Team, User string }

// Form is a modal that the app opened.
type Form struct {
	ID   string
	For  Person
	View json.RawMessage // as it stands
}

// Told is what the app told one person alone.
type Told struct {
	To   Person
	Text string // as the person sees it
}

// trigger opens one form, and soon.
type trigger struct {
	who  Person
	made time.Time
	used bool
}

// hook is the address that comes with a click.
type hook struct {
	who  Person
	uses int
}

// Sign gives the headers with which Slack signs a body.
func Sign(secret string, at time.Time, body []byte) http.Header {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body) // writing to a hash never fails
	return http.Header{
		"Content-Type":              {"application/x-www-form-urlencoded"},
		"X-Slack-Request-Timestamp": {stamp}, "X-Slack-Signature": {"v0=" + hex.EncodeToString(mac.Sum(nil))},
	}
}

// Deliver posts a body to an app and gives its status and answer.
func Deliver(ctx context.Context, to string, header http.Header, body []byte) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header = header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	return resp.StatusCode, string(b), err
}

// Payload is the body with which Slack delivers an interaction.
func Payload(interaction any) ([]byte, error) {
	b, err := json.Marshal(interaction)
	return []byte(url.Values{"payload": {string(b)}}.Encode()), err
}

// Press is a click on a button of a message that stands or stood.
type Press struct {
	By            Person
	Channel, TS   string // of the message
	Action, Value string // of the button
}

// Click is the body with which Slack delivers a click.
func (s *Server) Click(p Press) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.opts.Now()
	s.interactions++
	triggerID, hookID := fmt.Sprintf("%d.trigger", s.interactions), fmt.Sprint(s.interactions)
	s.triggers[triggerID] = &trigger{who: p.By, made: now}
	s.hooks[hookID] = &hook{who: p.By}
	id := ""
	if c := s.channel(p.Channel); c != nil {
		id = c.id
	}
	return Payload(map[string]any{
		"type": "block_actions", "team": map[string]any{"id": p.By.Team, "domain": "example"},
		"user":    map[string]any{"id": p.By.User, "team_id": p.By.Team, "username": "example"},
		"channel": map[string]any{"id": id, "name": p.Channel}, "trigger_id": triggerID,
		"container":    map[string]any{"type": "message", "message_ts": p.TS, "channel_id": id, "is_ephemeral": false},
		"response_url": s.base + "/hooks/actions/" + hookID, "message": map[string]any{"type": "message", "ts": p.TS},
		"actions": []any{map[string]any{"type": "button", "action_id": p.Action, "block_id": "attend", "value": p.Value, "action_ts": s.stamp(now)}},
	})
}

// Value is the value of a button of a message; empty: it has no such button.
func (m Message) Value(action string) string { return m.Buttons()[action] }

// Buttons are the values of all buttons of a message, by action.
func (m Message) Buttons() map[string]string {
	var list []block
	if json.Unmarshal(m.Blocks, &list) != nil {
		return nil
	}
	buttons := map[string]string{}
	for _, b := range list {
		for _, e := range b.Elements {
			if e.ActionID != "" {
				buttons[e.ActionID] = e.Value
			}
		}
	}
	return buttons
}

// Submission is the body for a form that was filled in and sent. fields are by block; one
// that begins with = is the choice of one of several.
func (f Form) Submission(fields map[string]string) ([]byte, error) {
	var view map[string]any
	if err := json.Unmarshal(f.View, &view); err != nil {
		return nil, err
	}
	values := map[string]any{}
	for field, value := range fields {
		element := map[string]any{"type": "plain_text_input", "value": value}
		if len(value) > 0 && value[0] == '=' {
			element = map[string]any{"type": "static_select", "selected_option": map[string]any{"value": value[1:]}}
		}
		values[field] = map[string]any{field: element}
	}
	view["id"], view["state"] = f.ID, map[string]any{"values": values}
	return Payload(map[string]any{
		"type": "view_submission", "team": map[string]any{"id": f.For.Team}, "user": map[string]any{"id": f.For.User, "team_id": f.For.Team},
		"view": view,
	})
}

// Forms gives all forms that were opened, oldest first, as they stand.
func (s *Server) Forms() []Form {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Form(nil), s.forms...)
}

// Told gives what people were told alone, in order.
func (s *Server) Told() []Told {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Told(nil), s.told...)
}

// viewsOpen opens a form for whoever's click the trigger is of.
func (s *Server) viewsOpen(r request) reply {
	t := s.triggers[r.form.Get("trigger_id")]
	switch {
	case t == nil:
		return fail("invalid_trigger_id")
	case t.used:
		return fail("exchanged_trigger_id")
	case r.at.Sub(t.made) > triggerLife:
		return fail("expired_trigger_id")
	case !validView([]byte(r.form.Get("view"))):
		return fail("invalid_arguments")
	}
	t.used = true
	f := Form{ID: fmt.Sprintf("V%09d", len(s.forms)+1), For: t.who, View: json.RawMessage(r.form.Get("view"))}
	s.forms = append(s.forms, f)
	return reply{body: map[string]any{"view": map[string]any{"id": f.ID, "type": "modal"}}}
}

// viewsUpdate replaces what a form shows.
func (s *Server) viewsUpdate(r request) reply {
	for i, f := range s.forms {
		if f.ID != r.form.Get("view_id") {
			continue
		}
		if !validView([]byte(r.form.Get("view"))) {
			return fail("invalid_arguments")
		}
		s.forms[i].View = json.RawMessage(r.form.Get("view"))
		return reply{body: map[string]any{"view": map[string]any{"id": f.ID, "type": "modal"}}}
	}
	return fail("not_found")
}

// answered takes what an app tells a person at the address that came with a click.
func (s *Server) answered(w http.ResponseWriter, r *http.Request) {
	var m struct {
		Type    string          `json:"response_type"`
		Text    string          `json:"text"`
		Blocks  json.RawMessage `json:"blocks"`
		Replace bool            `json:"replace_original"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&m)
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hooks[r.PathValue("id")]
	outcome := "ok"
	switch f := s.fault("response_url"); {
	case f != nil && f.LoseRequest:
		outcome = "request lost"
		drop(w)
	case f != nil && f.Status != 0:
		outcome = "http_" + strconv.Itoa(f.Status)
		w.WriteHeader(f.Status)
	case h == nil || h.uses == hookUses:
		outcome = "used_url"
		w.WriteHeader(http.StatusNotFound)
	case err != nil || Refusal(m.Text, m.Blocks) != "" || m.Replace || m.Type != "ephemeral":
		outcome = "invalid_payload"
		w.WriteHeader(http.StatusBadRequest)
	default:
		h.uses++
		s.told = append(s.told, Told{To: h.who, Text: Message{Text: m.Text, Blocks: m.Blocks}.Plain()})
	}
	s.calls = append(s.calls, Call{Method: "response_url", At: s.opts.Now(), Outcome: outcome})
}
