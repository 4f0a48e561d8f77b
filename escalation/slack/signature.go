package slack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// signedWithin is how far the signed time may lie from ours, either way.
const signedWithin = 5 * time.Minute

// Interactive reports whether clicks can be believed, and so whether there are buttons.
func (n *Notifier) Interactive() bool { return n.settings.interactive() }

// In reports whether the destination is this channel, as far as its id is known.
func (n *Notifier) In(channel string) bool { return channel != "" && n.channel() == channel }

// Verify reports whether Slack signed a raw body for this destination's app within five
// minutes of now. Without a signing secret nothing is believed.
func (n *Notifier) Verify(header http.Header, body []byte, now time.Time) bool {
	secret, stamp := n.signing(), header.Get("X-Slack-Request-Timestamp")
	signed, err := strconv.ParseInt(stamp, 10, 64)
	if secret == "" || err != nil || now.Sub(time.Unix(signed, 0)).Abs() > signedWithin {
		return false
	}
	hexed, versioned := strings.CutPrefix(header.Get("X-Slack-Signature"), "v0=")
	given, err := hex.DecodeString(hexed)
	if err != nil || !versioned {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body) // writing to a hash never fails
	return hmac.Equal(given, mac.Sum(nil))
}

// signing gives the signing secret as its file holds it now, so that a new one needs no
// restart; the last one that was read where the file cannot be.
func (n *Notifier) signing() string {
	if n.settings.SigningSecretFile != "" {
		if s, err := readToken(n.settings.SigningSecretFile); err == nil && s != "" {
			return s
		}
	}
	return n.settings.SigningSecret.Reveal()
}
