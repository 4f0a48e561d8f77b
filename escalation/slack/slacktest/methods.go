package slacktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// Every method runs with mu held.

func (s *Server) authTest(request) reply {
	return reply{scopes: s.opts.Scopes, body: map[string]any{"url": "https://example.slack.com/", "team": "Example", "user": "reconciler",
		"team_id": "T000000001", "user_id": "U000000001", "bot_id": "B000000001"}}
}

func (s *Server) post(r request) reply {
	c := s.channel(r.form.Get("channel"))
	if word := c.refuses(); word != "" {
		return fail(word)
	}
	if wait := s.pace(c, r.at); wait > 0 {
		return reply{err: "ratelimited", retryAfter: wait}
	}
	m, word := s.read(r)
	if word != "" {
		return fail(word)
	}
	if m.Thread = r.form.Get("thread_ts"); m.Thread != "" && c.message(m.Thread) == nil {
		return fail("thread_not_found")
	}
	m.Broadcast = m.Thread != "" && r.form.Get("reply_broadcast") == "true"
	m.Channel, m.ID, m.PostedAt, m.TS = c.name, c.id, r.at, s.stamp(r.at)
	c.messages = append(c.messages, m)
	return reply{body: map[string]any{"channel": c.id, "ts": m.TS, "message": m.wire(true)}}
}

func (s *Server) update(r request) reply {
	c := s.byID(r.form.Get("channel"))
	if word := c.refuses(); word != "" {
		return fail(word)
	}
	old := c.message(r.form.Get("ts"))
	if old == nil {
		return fail("message_not_found")
	}
	if wait := s.pace(c, r.at); wait > 0 {
		return reply{err: "ratelimited", retryAfter: wait}
	}
	m, word := s.read(r)
	if word != "" {
		return fail(word)
	}
	old.Text, old.Blocks, old.EditedAt = m.Text, m.Blocks, r.at
	if m.Metadata != nil {
		old.Metadata = m.Metadata
	}
	old.Edits++
	return reply{body: map[string]any{"channel": c.id, "ts": old.TS, "text": old.Text, "message": old.wire(true)}}
}

// message finds a message by its id.
func (c *channel) message(ts string) *Message {
	if i := slices.IndexFunc(c.messages, func(m *Message) bool { return m.TS == ts }); i >= 0 {
		return c.messages[i]
	}
	return nil
}

// history gives messages newest first, without the answers that only their thread
// shows; metadata only when it is asked for.
func (s *Server) history(r request) reply {
	c := s.byID(r.form.Get("channel"))
	if word := c.refuses(); word != "" && word != "is_archived" {
		return fail(word)
	}
	var list []*Message
	for _, m := range slices.Backward(c.messages) {
		if m.Thread == "" || m.Broadcast {
			list = append(list, m)
		}
	}
	return paged(r, list)
}

// replies gives a message and the answers to it, oldest first.
func (s *Server) replies(r request) reply {
	c := s.byID(r.form.Get("channel"))
	if word := c.refuses(); word != "" && word != "is_archived" {
		return fail(word)
	}
	root := c.message(r.form.Get("ts"))
	if root == nil {
		return fail("thread_not_found")
	}
	list := []*Message{root}
	for _, m := range c.messages {
		if m.Thread == root.TS {
			list = append(list, m)
		}
	}
	return paged(r, list)
}

// paged gives one page of those messages that are not too old.
func paged(r request, all []*Message) reply {
	limit, err := strconv.Atoi(r.form.Get("limit"))
	if err != nil || limit < 1 || limit > 999 {
		limit = 100
	}
	oldest, _ := strconv.ParseFloat(r.form.Get("oldest"), 64) // absent: 0
	var seen []*Message
	for _, m := range all {
		ts, _ := strconv.ParseFloat(m.TS, 64) // we made it
		if ts > oldest || ts == oldest && r.form.Get("inclusive") == "1" {
			seen = append(seen, m)
		}
	}
	if cursor := r.form.Get("cursor"); cursor != "" {
		i := slices.IndexFunc(seen, func(m *Message) bool { return m.TS == cursor })
		if i < 0 {
			return fail("invalid_cursor")
		}
		seen = seen[i:]
	}
	next := ""
	if len(seen) > limit {
		next, seen = seen[limit].TS, seen[:limit]
	}
	list := make([]any, 0, len(seen))
	for _, m := range seen {
		list = append(list, m.wire(r.form.Get("include_all_metadata") == "1"))
	}
	return reply{body: map[string]any{"messages": list, "has_more": next != "",
		"response_metadata": map[string]any{"next_cursor": next}}}
}

func (s *Server) conversations(request) reply {
	list := []any{}
	for _, c := range s.channels {
		if !c.left && !c.archived {
			list = append(list, map[string]any{"id": c.id, "name": c.name, "is_channel": true})
		}
	}
	return reply{body: map[string]any{"channels": list, "response_metadata": map[string]any{"next_cursor": ""}}}
}

// info tells of a channel that the token may know of.
func (s *Server) info(r request) reply {
	c := s.byID(r.form.Get("channel"))
	if c == nil {
		return fail("channel_not_found")
	}
	return reply{body: map[string]any{"channel": map[string]any{"id": c.id, "name": c.name, "is_archived": c.archived, "is_member": !c.left}}}
}

// byID finds a channel by its id alone: edits and history take no names.
func (s *Server) byID(id string) *channel {
	if c := s.channel(id); c != nil && c.id == id {
		return c
	}
	return nil
}

// refuses says why nothing can be done in a channel; empty: it can.
func (c *channel) refuses() string {
	switch {
	case c == nil:
		return "channel_not_found"
	case c.archived:
		return "is_archived"
	case c.left:
		return "not_in_channel"
	}
	return ""
}

// pace says how long to wait before a channel takes the next message, and takes the
// turn when there is no wait.
func (s *Server) pace(c *channel, at time.Time) time.Duration {
	if wait := c.next.Sub(at); wait > 0 && s.opts.Pace > 0 {
		return wait
	}
	c.next = at.Add(s.opts.Pace)
	return 0
}

// read takes text, blocks and metadata from a request, or says why Slack would
// refuse them.
func (s *Server) read(r request) (*Message, string) {
	m := &Message{Text: r.form.Get("text")}
	if b := r.form.Get("blocks"); b != "" {
		m.Blocks = json.RawMessage(b)
	}
	if b := r.form.Get("metadata"); b != "" {
		var meta struct {
			EventType string         `json:"event_type"`
			Payload   map[string]any `json:"event_payload"`
		}
		if err := json.Unmarshal([]byte(b), &meta); err != nil || meta.EventType == "" || meta.Payload == nil {
			return nil, "invalid_metadata_format"
		}
		m.Metadata = json.RawMessage(b)
	}
	return m, Refusal(m.Text, m.Blocks)
}

// stamp makes the next message id: the time, moved on where two fall together.
func (s *Server) stamp(at time.Time) string {
	s.last = max(s.last+1, at.UnixMicro())
	return fmt.Sprintf("%d.%06d", s.last/1e6, s.last%1e6)
}

// wire is the message as the interface shows it.
func (m *Message) wire(metadata bool) map[string]any {
	w := map[string]any{"type": "message", "bot_id": "B000000001", "ts": m.TS, "text": m.Text}
	if m.Blocks != nil {
		w["blocks"] = m.Blocks
	}
	if !m.EditedAt.IsZero() {
		w["edited"] = map[string]any{"user": "U000000001", "ts": m.TS}
	}
	if m.Thread != "" {
		w["thread_ts"] = m.Thread
	}
	if m.Broadcast {
		w["subtype"] = "thread_broadcast"
	}
	if metadata && m.Metadata != nil {
		w["metadata"] = m.Metadata
	}
	return w
}
