package stripetest

import (
	"net/http"
	"time"
)

const maxKeyLength = 255

// storedKey is an idempotency key of one account and mode.
type storedKey struct {
	received  time.Time
	endpoint  string // method and path of the first request
	params    string // its parameters, in one order
	requestID string
	done      bool // answer is valid; until then the key is in use
	answer    answer
}

// takeKey gives a request its key, or says why it shall not run: a stored answer, a
// mismatch, or another copy that is still running.
func (s *Server) takeKey(x *exchange) *answer {
	key := x.call.Key
	if key == "" || !x.call.Write() {
		return nil
	}
	if len(key) > maxKeyLength {
		return refuse(invalid("", "Idempotency keys can be up to %d characters long; this one has %d.", maxKeyLength, len(key)))
	}
	endpoint, params := x.call.Method+" "+x.call.Path, x.params.canonical()
	held := x.place.keys[key]
	if held != nil && held.done && x.call.At.Sub(held.received) >= s.opt.KeyRetention {
		held = nil
	}
	switch {
	case held == nil:
		x.key = &storedKey{received: x.call.At, endpoint: endpoint, params: params, requestID: x.call.RequestID}
		x.place.keys[key] = x.key
		return nil
	case held.endpoint != endpoint:
		return refuse(&apiError{Status: http.StatusBadRequest, Type: idempotencyError,
			Message: "Keys for idempotent requests can only be used for the same endpoint they were first used for ('" + held.endpoint + "' vs '" + endpoint + "'). Try using a key other than '" + key + "' if you meant to execute a different request."})
	case held.params != params:
		return refuse(&apiError{Status: http.StatusBadRequest, Type: idempotencyError,
			Message: "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '" + key + "' if you meant to execute a different request."})
	case !held.done:
		return refuse(keyInUse())
	}
	replay := held.answer
	replay.header = http.Header{"Idempotent-Replayed": {"true"}, "Original-Request": {held.requestID}}
	x.call.Replayed = true
	return &replay
}

func refuse(e *apiError) *answer {
	a := e.answer()
	return &a
}

func keyInUse() *apiError {
	return &apiError{Status: http.StatusConflict, Type: invalidRequest, Code: "idempotency_key_in_use",
		Message: "There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, and the other request is still going through)."}
}

// keepAnswer stores what the first request was told, success or not.
func (x *exchange) keepAnswer(a answer) {
	if x.key != nil {
		x.key.done, x.key.answer = true, a
	}
}

// dropKey forgets a key whose request never began executing.
func (x *exchange) dropKey() {
	if x.key != nil && x.place.keys[x.call.Key] == x.key {
		delete(x.place.keys, x.call.Key)
	}
}
