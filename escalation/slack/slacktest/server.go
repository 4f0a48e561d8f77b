package slacktest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxBody    = 1 << 20
	shutdownIn = 5 * time.Second
)

// Options say what the workspace is like. The zero value has one channel,
// #payments-recon, accepts any token and sets no pace.
type Options struct {
	// Token is the only one that is accepted; empty: any.
	Token string
	// Channels are names without the #. The bot is a member of each.
	Channels []string
	// Now is the workspace's clock; nil: the real one.
	Now func() time.Time
	// Pace is the shortest time between two posts or edits in one channel that is not
	// answered with 429; 0: any pace. Slack's own is one second.
	Pace time.Duration
	// Scopes are what auth.test says that the token may do, with commas; empty: it does not
	// say it.
	Scopes string
}

// Server is a running workspace. Its methods may be called at any time.
type Server struct {
	http *http.Server
	url  string
	base string // url without its path
	opts Options
	done chan struct{}

	// mu guards what follows; a request holds it from reading its faults to storing its
	// message, so that requests take effect one after the other.
	mu       sync.Mutex
	channels []*channel
	faults   []*Fault
	calls    []Call
	last     int64 // the newest message id, in microseconds

	interactions int // how many there were
	triggers     map[string]*trigger
	hooks        map[string]*hook
	forms        []Form
	told         []Told
}

type channel struct {
	id, name string
	archived bool
	left     bool // the bot was removed
	next     time.Time
	messages []*Message // oldest first
}

// Message is one message as it stands.
type Message struct {
	Channel  string // the channel's name
	ID       string // the channel's id
	TS       string
	Text     string
	Blocks   json.RawMessage
	Metadata json.RawMessage
	Thread   string // the message that it answers; empty: it stands for itself
	// Broadcast says that an answer is shown in the channel as well.
	Broadcast bool
	PostedAt  time.Time
	EditedAt  time.Time // zero: never edited
	Edits     int
}

// Call is one request that the workspace got.
type Call struct {
	Method  string
	At      time.Time
	Outcome string // ok, an error's word, or what went wrong with the answer
}

// Fault spoils requests of one method.
type Fault struct {
	Method string
	// After is how many requests of the method pass before the first one is spoiled.
	After int
	// Times is how often; 0: once; below 0: until Mend.
	Times int
	// Error is answered as ok:false under HTTP 200.
	Error string
	// Status is answered with a page that is no JSON. 429 has RetryAfter.
	Status     int
	RetryAfter time.Duration
	// LoseAnswer does what was asked and drops the connection; LoseRequest drops it
	// without doing anything. The sender cannot tell one from the other.
	LoseAnswer, LoseRequest bool
}

// Start starts a workspace on a port of the loopback device.
func Start(o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if len(o.Channels) == 0 {
		o.Channels = []string{"payments-recon"}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a Slack workspace: %w", err)
	}
	base := "http://" + l.Addr().String()
	s := &Server{opts: o, base: base, url: base + "/api/", done: make(chan struct{}), triggers: map[string]*trigger{}, hooks: map[string]*hook{}}
	for i, name := range o.Channels {
		s.channels = append(s.channels, &channel{id: fmt.Sprintf("C%09d", i+1), name: name})
	}
	mux := http.NewServeMux()
	for method, serve := range map[string]func(request) reply{
		"auth.test": s.authTest, "chat.postMessage": s.post, "chat.update": s.update,
		"conversations.history": s.history, "conversations.replies": s.replies, "users.conversations": s.conversations, "conversations.info": s.info,
		"views.open": s.viewsOpen, "views.update": s.viewsUpdate,
	} {
		mux.HandleFunc("POST /api/"+method, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, method, serve) })
	}
	mux.HandleFunc("POST /hooks/actions/{id}", s.answered)
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: shutdownIn}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // ends with ErrServerClosed
	}()
	return s, nil
}

// Close stops the workspace and waits until it has stopped.
func (s *Server) Close() {
	_ = s.http.Close() // connections that were lost on purpose may complain
	<-s.done
}

// URL is the value for a destination's api_url.
func (s *Server) URL() string { return s.url }

// ChannelID gives a channel's id; empty when there is none of that name.
func (s *Server) ChannelID(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channel(name); c != nil {
		return c.id
	}
	return ""
}

// Archive archives a channel, or brings it back.
func (s *Server) Archive(name string, archived bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channel(name); c != nil {
		c.archived = archived
	}
}

// Kick removes the bot from a channel, or invites it again.
func (s *Server) Kick(name string, kicked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channel(name); c != nil {
		c.left = kicked
	}
}

// Delete removes a message, as a person may.
func (s *Server) Delete(ts string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.channels {
		for i, m := range c.messages {
			if m.TS == ts {
				c.messages = append(c.messages[:i:i], c.messages[i+1:]...)
				return
			}
		}
	}
}

// Spoil lets requests fail from now on; faults of one method happen one after the
// other.
func (s *Server) Spoil(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.Times == 0 {
		f.Times = 1
	}
	s.faults = append(s.faults, &f)
}

// Mend ends all faults.
func (s *Server) Mend() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Rename gives a channel another name. Its id stays, and nothing answers to the old one.
func (s *Server) Rename(name, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.channel(name); c != nil {
		c.name = to
	}
}

// Roots gives the messages of a channel that answer no other, oldest first.
func (s *Server) Roots(name string) []Message {
	return slices.DeleteFunc(s.Messages(name), func(m Message) bool { return m.Thread != "" })
}

// Replies gives the answers to a message, oldest first.
func (s *Server) Replies(ts string) []Message {
	return slices.DeleteFunc(s.Messages(""), func(m Message) bool { return m.Thread != ts })
}

// Messages gives what stands in a channel, answers too, oldest first; all channels for
// "".
func (s *Server) Messages(name string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Message
	for _, c := range s.channels {
		if name != "" && c.name != name {
			continue
		}
		for _, m := range c.messages {
			list = append(list, *m)
		}
	}
	return list
}

// Calls gives all requests, in order.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// channel finds a channel by name, with or without #, or by id; mu is held.
func (s *Server) channel(name string) *channel {
	for _, c := range s.channels {
		if name == c.id || strings.TrimPrefix(name, "#") == c.name {
			return c
		}
	}
	return nil
}
