package slack

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
)

// errNoReceipt is an answer that says neither yes nor no.
var errNoReceipt = errors.New("the answer names no message")

// kinds says what each of Slack's words means for us. A word that is not listed is
// taken as a refusal: the notice stays undelivered, is counted, and is tried again.
var kinds = map[string]escalation.Kind{
	"ratelimited": escalation.RateLimited, "rate_limited": escalation.RateLimited,
	"message_limit_exceeded": escalation.RateLimited,
	"service_unavailable":    escalation.Unavailable, "team_added_to_org": escalation.Unavailable,
	"accesslimited": escalation.Unavailable,
	// Slack says of these that some of the request may have been done.
	"fatal_error": escalation.Lost, "internal_error": escalation.Lost, "request_timeout": escalation.Lost,
	"message_not_found": escalation.Gone, "cant_update_message": escalation.Gone, "edit_window_closed": escalation.Gone,
	// Of an answer: nothing stands that it could answer.
	"thread_not_found": escalation.Gone, "cannot_reply_to_message": escalation.Gone, "restricted_action_thread_locked": escalation.Gone,
}

// formCodes are refusals of a message's form.
var formCodes = map[string]bool{
	"invalid_blocks": true, "invalid_blocks_format": true, "invalid_attachments": true,
	"msg_blocks_too_long": true, "msg_too_long": true, "no_text": true,
	"invalid_metadata_format": true, "metadata_too_large": true, "invalid_arguments": true,
}

// fault turns a client's error into one that says whether to try again. It keeps
// Slack's own word and drops everything else: errors of the client may hold the
// address, and addresses may hold secrets.
func (n *Notifier) fault(op string, err error) error {
	e := &escalation.Error{Destination: n.name, Op: op, Kind: escalation.Lost}
	if limited, ok := errors.AsType[*slackgo.RateLimitedError](err); ok {
		e.Kind, e.RetryAfter = escalation.RateLimited, limited.RetryAfter
		return e
	}
	if said, ok := errors.AsType[slackgo.SlackErrorResponse](err); ok {
		e.Kind, e.Code = escalation.Refused, word(said.Err)
		if k, ok := kinds[e.Code]; ok {
			e.Kind = k
		} else if formCodes[e.Code] {
			e.Kind = escalation.Rejected
		}
		return e
	}
	if status, ok := errors.AsType[slackgo.StatusCodeError](err); ok {
		e.Code = "http_" + strconv.Itoa(status.Code)
		switch {
		case status.Code == http.StatusTooManyRequests:
			e.Kind = escalation.RateLimited
		case status.Code < 500:
			e.Kind = escalation.Refused
		}
		return e
	}
	e.Kind, e.Code = transport(err)
	return e
}

// faultOrNil is fault, and nil for nil.
func (n *Notifier) faultOrNil(op string, err error) error {
	if err == nil {
		return nil
	}
	return n.fault(op, err)
}

// transport judges an error without an answer of Slack's. Only what certainly never
// left is told apart; everything else may have been posted.
func transport(err error) (escalation.Kind, string) {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return escalation.Unavailable, "no connection"
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return escalation.Unavailable, "name not found"
	}
	if _, ok := errors.AsType[*strconv.NumError](err); ok {
		return escalation.RateLimited, "unreadable Retry-After"
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return escalation.Lost, "answer is not JSON"
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return escalation.Lost, "no answer in time"
	}
	switch {
	case errors.Is(err, context.Canceled):
		return escalation.Lost, "stopped while waiting for the answer"
	case errors.Is(err, errNoReceipt):
		return escalation.Lost, errNoReceipt.Error()
	}
	return escalation.Lost, "connection broke"
}

// word keeps one of Slack's words short and free of anything else.
func word(s string) string {
	if len(s) > 60 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
		return "unreadable error"
	}
	return s
}

// wordOf gives Slack's own word in an error, empty when it has none.
func wordOf(err error) string {
	if e, ok := errors.AsType[*escalation.Error](err); ok {
		return e.Code
	}
	return ""
}
