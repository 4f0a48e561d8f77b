package stripe

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/sources"
)

const (
	// defaultQuiet is how long we keep silent after a 429 that names no time. Stripe
	// documents no Retry-After.
	defaultQuiet = 5 * time.Second
	// maxQuiet bounds what a reply may ask for: a proxy's "3600" must not stop us.
	maxQuiet = 2 * time.Minute
)

// Only words of these shapes leave an error reply. Messages quote what was sent, and
// with it names and addresses.
var (
	codeWords  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	paramNames = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}(\[[a-z0-9_]{1,40}\]){0,2}$`)
	requestIDs = regexp.MustCompile(`^req_[A-Za-z0-9_]{1,64}$`)
)

// replyError is what an error reply says, cleaned.
type replyError struct {
	Status int
	Type   string
	Code   string
	Param  string
	json   bool // the reply was an error object of Stripe's
}

func (e replyError) Error() string {
	b := "HTTP " + strconv.Itoa(e.Status)
	for _, part := range []struct{ name, value string }{{"type", e.Type}, {"code", e.Code}, {"param", e.Param}} {
		if part.value != "" {
			b += ", " + part.name + " " + part.value
		}
	}
	if !e.json {
		b += ", not a reply of Stripe's API"
	}
	return b
}

// missing reports that the object, or the one that a filter names, does not exist in
// the account and mode that were asked.
func (e replyError) missing() bool {
	return e.Code == "resource_missing" && (e.Status == http.StatusNotFound || e.Status == http.StatusBadRequest)
}

// readReplyError reads an error reply without its texts.
func readReplyError(status int, body []byte) replyError {
	var reply struct {
		Error *struct {
			Type  string `json:"type"`
			Code  string `json:"code"`
			Param string `json:"param"`
		} `json:"error"`
	}
	e := replyError{Status: status}
	if json.Unmarshal(body, &reply) != nil || reply.Error == nil || reply.Error.Type == "" {
		return e
	}
	keep := func(s string, shape *regexp.Regexp) string {
		if shape.MatchString(s) {
			return s
		}
		return ""
	}
	e.json = true
	e.Type = keep(reply.Error.Type, codeWords)
	e.Code = keep(reply.Error.Code, codeWords)
	e.Param = keep(reply.Error.Param, paramNames)
	return e
}

// classify turns a request that brought no usable answer into a fault. err is never
// kept: stripe-go puts bodies into it, and net/http whole URLs.
func classify(ex *exchange, err error) (sources.Kind, error) {
	switch {
	case errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return sources.Timeout, errors.New("no answer in time")
	case errors.Is(err, errWrite):
		return sources.OwnBug, errWrite
	case ex.status == 0:
		return sources.Unavailable, errors.New(noReply(err))
	case ex.status >= 400:
		reply := readReplyError(ex.status, ex.body)
		return kindOf(reply), reply
	case errors.Is(err, errCut):
		return sources.Truncated, errCut
	case errors.Is(err, errTooLarge):
		return sources.Malformed, errTooLarge
	}
	return sources.Malformed, errors.New("HTTP " + strconv.Itoa(ex.status) + " with a reply that is not what Stripe's API sends")
}

func kindOf(reply replyError) sources.Kind {
	switch {
	case reply.Status == http.StatusTooManyRequests:
		return sources.RateLimited
	case reply.Code == "account_invalid":
		return sources.WrongAccount
	case reply.Status == http.StatusUnauthorized, reply.Status == http.StatusForbidden:
		return sources.BadCredentials
	case reply.Status >= 500, reply.Status == http.StatusConflict, reply.Status == http.StatusFailedDependency,
		reply.Status == http.StatusRequestTimeout:
		return sources.Unavailable
	case !reply.json:
		return sources.Malformed
	}
	return sources.OwnBug
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// noReply says in our own words why there was no reply.
func noReply(err error) string {
	var dns *net.DNSError
	var verify *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &dns):
		return "the host name was not found"
	case errors.As(err, &verify), errors.As(err, &unknown):
		return "the certificate is not trusted"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	}
	return "the connection broke before a reply"
}

// retryAfter gives how long to keep silent after a 429, bounded.
func retryAfter(h http.Header) time.Duration {
	text := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 {
		if seconds > maxQuiet.Seconds() {
			return maxQuiet
		}
		return max(time.Duration(seconds*float64(time.Second)), 0)
	}
	at, err := http.ParseTime(text)
	sent, errDate := http.ParseTime(h.Get("Date"))
	if err == nil && errDate == nil {
		return min(max(at.Sub(sent), 0), maxQuiet)
	}
	return defaultQuiet
}
