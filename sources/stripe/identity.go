package stripe

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/seed-1c4f4dc2/reconciler/sources"
)

// identity is what is known of the account that a place's key opens.
type identity int

const (
	notAsked identity = iota
	isRight
	isWrong
	notTold // the key may not read it, or the configured account is no id of Stripe's
)

// identify asks, once in the life of the source, which account a place's key opens:
// with the key of another account every list would be complete and empty, and every id
// missing. It reports whether the whole group was told blind.
func (a *asking) identify(ctx context.Context, g group) (bool, error) {
	if g.place.opens == notAsked && !strings.HasPrefix(g.place.account, "acct_") {
		g.place.opens = notTold
	}
	if g.place.opens == notAsked {
		ex, fault, err := a.do(func() (*exchange, *sources.Error, error) { return a.self(ctx, g.place) })
		if err != nil {
			return false, err
		}
		a.spare.calls++
		var known bool
		if g.place.opens, known = identityFrom(ex, fault, g.place.account); !known {
			a.blind(g, trail{}, fault)
			return true, nil
		}
		if fault != nil {
			a.forgive() // a key may be good without this permission
		}
	}
	if g.place.opens == isWrong {
		a.blind(g, trail{}, a.fault("GET /v1/account", sources.WrongAccount,
			errors.New("the API key opens another account than "+g.place.account+"; correct one of the two in the settings")))
		return true, nil
	}
	return false, nil
}

// identityFrom reads the reply, false when it says nothing and must be asked again. A
// restricted key need not have the permission to read its account.
func identityFrom(ex *exchange, fault *sources.Error, account string) (identity, bool) {
	if fault == nil {
		var self struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(ex.body, &self) == nil && self.ID == account {
			return isRight, true
		}
		return isWrong, true
	}
	var reply replyError
	if errors.As(fault.Err, &reply) && reply.json && fault.Kind != sources.WrongAccount &&
		(reply.Status == http.StatusForbidden || reply.Status == http.StatusNotFound) {
		return notTold, true
	}
	return notAsked, false
}
