package httpapi

import (
	"fmt"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	postmarkURL       = "https://api.postmarkapp.com"
	postmarkKind      = "email"
	postmarkRetention = recon.Duration(45 * 24 * 3600e9)
	postmarkName      = 20    // characters of a metadata field's name at most
	postmarkReach     = 10000 // messages that one search shows at most
	postmarkPage      = 100

	compareNothing   = "nothing"
	compareRecipient = "recipient"
	compareContent   = "recipient_and_subject"
)

// PostmarkSettings are the settings of a source of kind postmark: letters sent through
// Postmark, with our operation id in their metadata.
//
// Postmark keeps no idempotency keys and does not say after how long its search shows a
// message. So a search that finds nothing proves nothing, unless Lag says what you have
// measured.
type PostmarkSettings struct {
	System string `yaml:"system" json:"system"` // default: the source's name
	// Servers are the Postmark servers, each with its own token.
	Servers []PostmarkServer `yaml:"servers" json:"servers"`
	APIURL  string           `yaml:"api_url" json:"api_url"` // default: Postmark's own
	// Marker is the metadata field under which senders put our operation id: at most 20
	// characters. Default operation_id.
	Marker string `yaml:"marker" json:"marker"`
	// Kind is the kind of effect that your actions name. Default email.
	Kind string `yaml:"kind" json:"kind"`
	// Stream limits searches to one message stream.
	Stream string `yaml:"stream" json:"stream"`
	// Lag is after how long a message that was taken is taken to be found. With it, not
	// found is not there; without it, not found proves nothing.
	Lag recon.Duration `yaml:"lag" json:"lag"`
	// Retention is for how long your servers keep messages, 7 to 365 days. Default 45d.
	Retention recon.Duration `yaml:"retention" json:"retention"`
	// Compare says what of a letter is held against the operation's target, which is then
	// made by [HashTarget]: nothing (default), recipient, or recipient_and_subject.
	Compare string `yaml:"compare" json:"compare"`
	// PerSecond bounds our own requests. Default 5.
	PerSecond int `yaml:"per_second" json:"per_second"`
}

// PostmarkServer is one Postmark server.
type PostmarkServer struct {
	Account   string       `yaml:"account" json:"account"` // the server's name or number
	Mode      string       `yaml:"mode" json:"mode"`       // default live; test for a sandbox server
	Token     recon.Secret `yaml:"token" json:"token"`
	TokenFile string       `yaml:"token_file" json:"token_file"`
}

// ReadSecrets fills the servers' tokens. It reports every file that cannot be read.
func (s *PostmarkSettings) ReadSecrets(read func(name string) ([]byte, error)) []recon.Fault {
	var faults []recon.Fault
	for i := range s.Servers {
		server := &s.Servers[i]
		auth := AuthSettings{Token: server.Token, TokenFile: server.TokenFile}
		faults = append(faults, auth.readSecrets(fmt.Sprintf("servers[%d]", i), read)...)
		server.Token = auth.Token
	}
	return faults
}

// Validate reports all that is wrong.
func (s PostmarkSettings) Validate() []recon.Fault {
	var faults []recon.Fault
	fault := faulter(func(path, format string, args ...any) {
		faults = append(faults, recon.Fault{Path: path, Problem: fmt.Sprintf(format, args...)})
	})
	if s.APIURL != "" && !isAddress(s.APIURL) {
		fault("api_url", "is no base address; write it like %s, without user or query", postmarkURL)
	}
	if len(s.Marker) > postmarkName || strings.ContainsAny(s.Marker, " {}[]\"=&") {
		fault("marker", "is no name of a metadata field; at most %d letters, digits, - and _", postmarkName)
	}
	if day := recon.Duration(24 * 3600e9); s.Retention != 0 && (s.Retention < 7*day || s.Retention > 365*day) {
		fault("retention", "must be 7 to 365 days, as the servers are set")
	}
	switch s.Compare {
	case "", compareNothing, compareRecipient, compareContent:
	default:
		fault("compare", "%q is none of %s, %s and %s", s.Compare, compareNothing, compareRecipient, compareContent)
	}
	if s.PerSecond < 0 {
		fault("per_second", "must not be negative")
	}
	if len(s.Servers) == 0 {
		fault("servers", "is missing; write at least one server with its account and token_file")
	}
	for i, server := range s.Servers {
		at := fault.under(fmt.Sprintf("servers[%d]", i))
		if server.Token.IsZero() && server.TokenFile == "" {
			at("token_file", "is missing; name the file that holds the server's API token")
		}
	}
	places := Settings{Accounts: s.accounts()}
	places.validateAccounts(func(path, format string, args ...any) {
		if len(s.Servers) > 0 && !strings.Contains(path, "auth") {
			fault(strings.Replace(path, "accounts", "servers", 1), format, args...)
		}
	})
	return faults
}

func (s PostmarkSettings) accounts() []AccountSettings {
	list := make([]AccountSettings, len(s.Servers))
	for i, server := range s.Servers {
		list[i] = AccountSettings{Account: server.Account, Mode: orElse(server.Mode, sources.ModeLive),
			Auth: AuthSettings{Header: "X-Postmark-Server-Token", Token: server.Token, TokenFile: server.TokenFile}}
	}
	return list
}

// Filled gives the settings of the source of that name as they are used.
func (s PostmarkSettings) Filled(name string) any {
	s.System, s.Marker, s.APIURL = orElse(s.System, name), orElse(s.Marker, defaultMarker), orElse(s.APIURL, postmarkURL)
	s.Kind, s.Compare = orElse(s.Kind, postmarkKind), orElse(s.Compare, compareNothing)
	if s.Retention == 0 {
		s.Retention = postmarkRetention
	}
	if s.PerSecond == 0 {
		s.PerSecond = 5
	}
	servers := make([]PostmarkServer, len(s.Servers))
	for i, server := range s.Servers {
		server.Mode = orElse(server.Mode, sources.ModeLive)
		servers[i] = server
	}
	s.Servers = servers
	return s
}

// API gives what the settings mean for a JSON API.
func (s PostmarkSettings) API(name recon.SourceName) Settings {
	s = s.Filled(string(name)).(PostmarkSettings)
	return Settings{
		System: s.System, Accounts: s.accounts(), APIURL: s.APIURL, Marker: s.Marker, PerSecond: s.PerSecond,
		Effects: []EffectSettings{s.letters()},
	}
}

// letters are messages as Postmark shows them. Its search does not show what became of a
// message after it was sent; each sent one is read by its id.
//
// Delivered, Opened and Bounced are named by
// postmarkapp.com/blog/messageevents-every-message-event-in-one-api-call. SpamComplaint is the
// name of the webhook and of a type of bounce (postmarkapp.com/email-webhooks); no page that we
// could read names it among MessageEvents, and one that never comes changes nothing. That a
// message which is not there is 422 with ErrorCode 701 is how clients type it;
// postmarkapp.com/developer/api/overview also knows 404, which stays blind here.
func (s PostmarkSettings) letters() EffectSettings {
	consistency := recon.Eventual
	if s.Lag > 0 {
		consistency = recon.Strong
	}
	lookup := LookupSettings{Consistency: string(consistency), Lag: s.Lag, History: s.Retention}
	search := map[string]string{}
	if s.Stream != "" {
		search["messagestream"] = s.Stream
	}
	byID, byReference, list := lookup, lookup, lookup
	byID.Path = "/messages/outbound/{id}/details"
	byID.NotFound = NotFoundSettings{Status: 422, Path: "ErrorCode", Equals: "701"}
	byReference.Path, byReference.Items, byReference.NotFound = "/messages/outbound", "Messages", NotFoundSettings{Empty: true}
	byReference.Query = map[string]string{"metadata_{marker}": "{reference}"}
	list.Path, list.Items, list.Query, list.Order = "/messages/outbound", "Messages", search, "newest"
	// Postmark reads dates as US Eastern ones, both ends included.
	list.Since = BoundSettings{Param: "fromdate", Format: "YYYY-MM-DDThh:mm:ss", Zone: "America/New_York"}
	list.Until = BoundSettings{Param: "todate", Format: "YYYY-MM-DDThh:mm:ss", Zone: "America/New_York"}
	e := EffectSettings{
		Kind:     s.Kind,
		Fields:   FieldSettings{ID: "MessageID", CreatedAt: "ReceivedAt", Status: "Status", Reference: `Metadata["{marker}"]`},
		Required: []string{"Metadata", "Recipients", "Subject"},
		Statuses: map[string]string{"Queued": "in_flight", "Sent": "completed", "Processed": "completed"},
		// A complaint shows that the letter came. Transient, Opened and the like say nothing.
		Log: LogSettings{Items: "MessageEvents", Type: "Type", At: "ReceivedAt",
			Types: map[string]string{"Delivered": "completed", "SpamComplaint": "completed", "Bounced": "failed"}},
		Summary: true, ByID: byID, ByReference: byReference, List: list,
		Paging: PagingSettings{Style: styleOffset, Param: "offset", SizeParam: "count", Size: postmarkPage, Total: "TotalCount", Reach: postmarkReach},
	}
	switch s.Compare {
	case compareRecipient:
		e.Fields.TargetHash = []string{"Recipients"}
	case compareContent:
		e.Fields.TargetHash = []string{"Recipients", "Subject"}
	}
	return e
}

// NewPostmark makes a source from settings whose secrets were read. The error lists every
// fault of the settings.
func NewPostmark(name recon.SourceName, s PostmarkSettings, o Options) (*Source, error) {
	if faults := s.Validate(); len(faults) > 0 {
		return nil, faultsError(name, faults)
	}
	return New(name, s.API(name), o)
}
