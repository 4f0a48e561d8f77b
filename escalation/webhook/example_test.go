package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// What follows, up to the end of the file, stands in docs/webhook.md as well.

// verify gives the body of a request that reconciler signed within the last five
// minutes. Compare first, decode afterwards.
func verify(r *http.Request, secret string) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	at := r.Header.Get("Reconciler-Timestamp")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return nil, errors.New("too old, or from a clock that differs")
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	for _, s := range strings.Split(r.Header.Get("Reconciler-Signature"), ",") {
		given, err := hex.DecodeString(strings.TrimPrefix(s, "v1="))
		if err == nil && hmac.Equal(given, mac.Sum(nil)) {
			return body, nil
		}
	}
	return nil, errors.New("not signed with our secret")
}
