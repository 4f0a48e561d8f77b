package stripetest

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Types of errors, as the provider writes them.
const (
	invalidRequest   = "invalid_request_error"
	idempotencyError = "idempotency_error"
	cardError        = "card_error"
	providerError    = "api_error"
)

// apiError is an error with the provider's body.
type apiError struct {
	Status  int    `json:"-"`
	Type    string `json:"type"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`

	DeclineCode   string         `json:"decline_code,omitempty"`
	Charge        string         `json:"charge,omitempty"`
	PaymentIntent map[string]any `json:"payment_intent,omitempty"`
}

// answer is what a request is told.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (e *apiError) answer() answer {
	a := ok(map[string]any{"error": e})
	a.status = e.Status
	return a
}

// ok is a 200 with the value as JSON.
func ok(value any) answer {
	body, err := json.Marshal(value)
	if err != nil {
		// Unreachable unless an object shows something that JSON cannot hold.
		panic(fmt.Sprintf("stripetest: encode an answer: %v", err))
	}
	return answer{status: http.StatusOK, body: append(body, '\n')}
}

func invalid(param, format string, args ...any) *apiError {
	return &apiError{Status: http.StatusBadRequest, Type: invalidRequest, Param: param,
		Message: fmt.Sprintf(format, args...)}
}

// missing is how the provider says that an id is not known in this account and mode.
func missing(k kind, id, param string) *apiError {
	return &apiError{Status: http.StatusNotFound, Type: invalidRequest, Code: "resource_missing", Param: param,
		Message: fmt.Sprintf("No such %s: '%s'", k, id)}
}
