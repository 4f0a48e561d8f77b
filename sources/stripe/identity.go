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

// identify asks, once in the life of the source, which account a place's key opens, and
// again now and then where the key would not tell: with the key of another account every list would be complete and empty, and every id
// missing. A fault means that nothing can be asked there.
func (a *asking) identify(ctx context.Context, p *place) (*sources.Error, error) {
	opens := a.memory.identityOf(p)
	if strings.HasPrefix(p.account, "acct_") && a.memory.mayAskSelf(p, a.now()) {
		ex, fault, err := a.do(func() (*exchange, *sources.Error, error) { return a.self(ctx, p) })
		if err != nil {
			return nil, err
		}
		if ex.sent {
			a.Spare++
		}
		var known bool
		if opens, known = identityFrom(ex, fault, p.account); !known {
			return fault, nil
		}
		a.memory.identified(p, opens, a.now())
		if fault != nil {
			a.forgive() // a key may be good without this permission
		}
	}
	if opens == isWrong {
		return a.fault("GET /v1/account", sources.WrongAccount,
			errors.New("the API key opens another account than "+p.account+"; correct one of the two in the settings")), nil
	}
	return nil, nil
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
