package stripetest

import (
	"net/http"
	"strconv"
	"time"
)

// before gives the answer of a fault that strikes before the endpoint; nil when the
// request goes on.
func (f Fault) before() *answer {
	switch f.Kind {
	case RateLimited:
		a := (&apiError{Status: http.StatusTooManyRequests, Type: invalidRequest, Code: "rate_limit",
			Message: "Request rate limit exceeded."}).answer()
		a.header = http.Header{"Stripe-Rate-Limited-Reason": {"global-rate"}}
		if f.RetryAfter > 0 {
			a.header.Set("Retry-After", strconv.Itoa(int(f.RetryAfter/time.Second)))
		}
		return &a
	case LockTimeout:
		return refuse(&apiError{Status: http.StatusTooManyRequests, Type: invalidRequest, Code: "lock_timeout",
			Message: "This object cannot be accessed right now because another API request or Stripe process is currently accessing it."})
	case Unauthorized:
		return refuse(&apiError{Status: http.StatusUnauthorized, Type: invalidRequest, Code: "api_key_expired",
			Message: "Expired API Key provided."})
	case Forbidden:
		return refuse(&apiError{Status: http.StatusForbidden, Type: invalidRequest,
			Message: "The provided key does not have the required permissions for this endpoint."})
	case KeyInUse:
		return refuse(keyInUse())
	case BadRequest:
		return refuse(invalid(f.Param, "Invalid %s", f.Param))
	case Closed, ProxyPage, NotJSON, EmptyBody, EmptyObject:
		if !f.Executed && f.Delay <= 0 {
			return &answer{}
		}
	}
	return nil
}

// after gives what a fault tells instead of the true answer.
func (f Fault) after(truth answer, c *Call) answer {
	status := func(usual int) int {
		if f.Status != 0 {
			return f.Status
		}
		return usual
	}
	plain := http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
	switch f.Kind {
	case Closed:
		return answer{}
	case ServerError:
		if !c.Write() {
			return serverError().answer()
		}
	case ProxyPage:
		code := status(http.StatusBadGateway)
		page := "<html><head><title>" + strconv.Itoa(code) + " " + http.StatusText(code) + "</title></head><body></body></html>\n"
		return answer{status: code, header: http.Header{"Content-Type": {"text/html"}}, body: []byte(page)}
	case NotJSON:
		return answer{status: status(http.StatusOK), header: plain, body: []byte("upstream connect error or disconnect/reset before headers\n")}
	case EmptyBody:
		return answer{status: status(http.StatusOK), header: plain}
	case EmptyObject:
		return answer{status: http.StatusOK, body: []byte("{}\n")}
	}
	return truth
}

func serverError() *apiError {
	return &apiError{Status: http.StatusInternalServerError, Type: providerError,
		Message: "Sorry! There was an error while talking to one of our backends. Support has been notified."}
}
