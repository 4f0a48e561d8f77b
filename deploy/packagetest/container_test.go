package packagetest

import (
	"encoding/pem"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/escalation/slack/slacktest"
)

// pinned is an image by a version of at least two numbers, or by its digest.
var pinned = regexp.MustCompile(`(:v?[0-9]+\.[0-9]+[0-9A-Za-z.-]*|@sha256:[0-9a-f]{64})$`)

func TestTheImageHoldsTheProgramAndRunsItAsNobody(t *testing.T) {
	c := image.file
	first, last := c.stages[0], c.stages[1]
	if !pinned.MatchString(first.base) || last.base != "scratch" {
		t.Errorf("the stages begin from %s and %s: want one that is pinned, and scratch", first.base, last.base)
	}
	toolchain := regexp.MustCompile(`(?m)^toolchain go(\S+)`).FindStringSubmatch(read(t, filepath.Join(root, "go.mod")))[1]
	if version, _, _ := strings.Cut(strings.TrimPrefix(first.base, "golang:"), "-"); version != toolchain {
		t.Errorf("it is built with Go %s, and go.mod has releases built with %s", version, toolchain)
	}
	if uid, _ := userOf(t); uid == 0 {
		t.Error("it runs as root")
	}
	if got := strings.Join(append(last.lists["ENTRYPOINT"], last.lists["CMD"]...), " "); got != "/reconciler serve" {
		t.Errorf("it runs %s", got)
	}
	var files []string
	err := filepath.WalkDir(image.dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, image.dir))
		}
		return err
	})
	if want := "/etc/ssl/certs/ca-certificates.crt /reconciler"; err != nil || strings.Join(files, " ") != want {
		t.Errorf("it holds %v, want %s: %v", files, want, err)
	}
	for _, name := range []string{"go.mod", "go.sum", "cmd/reconciler/main.go", "ledger/sql/expire.sql"} {
		if ignored, err := c.ignore.MatchesOrParentMatches(name); ignored || err != nil {
			t.Errorf("%s is not sent to the builder: %v", name, err)
		}
	}
}

// userOf is the user of the image.
func userOf(t *testing.T) (uid, gid int) {
	t.Helper()
	user, group, _ := strings.Cut(image.file.stages[1].set["USER"], ":")
	uid, err := strconv.Atoi(user)
	if err != nil {
		t.Fatalf("USER %s: an image without /etc/passwd needs numbers", user)
	}
	if gid, err = strconv.Atoi(group); err != nil {
		t.Fatalf("USER %s: %v", group, err)
	}
	return uid, gid
}

// within runs the program in a root that holds nothing but the image and the given
// files, as the image's user and with its environment.
func within(t *testing.T, files map[string]string, environ []string, args ...string) (said string, err error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "container") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // of no use to anybody
	if err := os.CopyFS(dir, os.DirFS(image.dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range files {
		write(t, filepath.Join(dir, path), text)
	}
	uid, gid := userOf(t)
	cmd := exec.CommandContext(t.Context(), image.file.stages[1].lists["ENTRYPOINT"][0], args...)
	cmd.Dir, cmd.Env = "/", append(append([]string{}, image.file.stages[1].env...), environ...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: dir, Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: true}}
	if os.Getuid() != 0 {
		// An ordinary user may do it in a name space of users of its own.
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestTheImageKnowsTheTimeZones(t *testing.T) {
	said, err := within(t, map[string]string{"/etc/reconciler/reconciler.yaml": `
zone: America/New_York
schedule: {audit: "CRON_TZ=Australia/Lord_Howe 30 2 * * *"}
`}, nil, "config", "check")
	if err != nil || !strings.Contains(said, "has no fault") {
		t.Errorf("%v\n%s", err, said)
	}
	said, err = within(t, nil, nil, "config", "check")
	if err == nil || !strings.Contains(said, "/etc/reconciler/reconciler.yaml") {
		t.Errorf("without a configuration it says: %v\n%s", err, said)
	}
}

// The doctor asks Slack, over TLS: what signs the certificate stands where the image has
// the public authorities, or nobody is trusted.
func TestTheImageTrustsItsCertificatesOnly(t *testing.T) {
	slack, err := slacktest.Start(slacktest.Options{Now: time.Now, Token: "xoxb-" + "TESTONLY", Scopes: "chat:write,channels:read,groups:read"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slack.Close)
	behind, err := url.Parse(slack.URL())
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { asked.Add(1); r.SetURL(behind) }})
	t.Cleanup(front.Close)
	files := map[string]string{"/etc/reconciler/reconciler.yaml": `
escalation:
  destinations:
    - {name: recon, kind: slack, settings: {channel: "C1", token: "${SLACK_TOKEN}", api_url: "` + front.URL + `"}}
`}
	environ := []string{"SLACK_TOKEN=xoxb-TESTONLY", "RECONCILER_DATABASE_URL=postgres://nobody@127.0.0.1:1/none"}
	said, _ := within(t, files, environ, "doctor") // it fails: there is no database
	if n := asked.Load(); n != 0 || !strings.Contains(said, "Slack does not answer") {
		t.Errorf("it trusts anybody, and asked %d times:\n%s", n, said)
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw})
	const bundle = "/etc/ssl/certs/ca-certificates.crt"
	files[bundle] = read(t, filepath.Join(image.dir, bundle)) + string(authority)
	said, _ = within(t, files, environ, "doctor")
	if asked.Load() == 0 || strings.Contains(said, "Slack does not answer") {
		t.Errorf("it does not read %s:\n%s", bundle, said)
	}
}

// The probe of the image is a verb that the program has, and fails while nothing serves.
func TestTheProbeOfTheImageTellsThatNothingServes(t *testing.T) {
	probe := image.file.stages[1].lists["HEALTHCHECK"]
	if len(probe) < 3 || probe[0] != "CMD" || probe[1] != "/reconciler" {
		t.Fatalf("HEALTHCHECK %q: an image without a shell needs the form of a list", probe)
	}
	said, err := within(t, map[string]string{"/etc/reconciler/reconciler.yaml": "listen: {private: \":1\"}\n"}, nil, probe[2:]...)
	if err == nil || !strings.Contains(said, "the daemon does not answer") {
		t.Errorf("%v\n%s", err, said)
	}
}
