package config

import (
	"net"
	"net/netip"
	"regexp"
	"strconv"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// listen checks where the daemon is to answer, and that the token of the status answers can
// be read: what serve would find at its start is a fault of the file.
func (d *decoder) listen(l Listen) {
	for _, one := range []struct{ key, address string }{{"public", l.Public}, {"private", l.Private}} {
		if !isAddress(one.address) {
			d.fault(nil, "listen."+one.key, "%q is no address to listen on; write HOST:PORT, as in 127.0.0.1:9464, or :9464 for every address of the machine", one.address)
		}
	}
	if l.Public == l.Private && !anyPort(l.Private) {
		d.fault(nil, "listen.private", "is the same address as listen.public; give each its own, and keep this one inside")
	}
	var token recon.Secret
	for _, f := range token.ReadFile("listen.token_file", l.TokenFile, "the token of the status answers", d.secretFile) {
		d.fault(nil, f.Path, "%s, or leave the key out", f.Problem)
	}
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?\.?$`)

// isAddress reports whether something may listen there: a port by number, of any host.
func isAddress(address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return false
	}
	if _, err := netip.ParseAddr(host); err == nil || host == "" {
		return true
	}
	return hostName.MatchString(host)
}

// anyPort reports whether the system chooses the port, each time another.
func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port == "0"
}
