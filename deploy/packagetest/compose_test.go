package packagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/goccy/go-yaml"
	"github.com/jackc/pgx/v5"
)

const composeDir = "../compose"

// project is the compose file, held against the schema of the specification.
func project(t *testing.T) *types.Project {
	t.Helper()
	dir, err := filepath.Abs(composeDir)
	if err != nil {
		t.Fatal(err)
	}
	details := types.ConfigDetails{WorkingDir: dir, ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "compose.yaml")}}, Environment: types.Mapping{}}
	p, err := loader.LoadWithContext(t.Context(), details, func(o *loader.Options) { o.SetProjectName("reconciler", true) })
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTheComposeFileNamesWhatExists(t *testing.T) {
	p := project(t)
	for _, want := range []string{"postgres", "migrate", "reconciler", "prometheus", "grafana"} {
		if _, ok := p.Services[want]; !ok {
			t.Errorf("there is no service %s", want)
		}
	}
	mounted := map[string]bool{}
	for name, s := range p.Services {
		if s.Build == nil && !pinned.MatchString(s.Image) {
			t.Errorf("%s: the image %s is not pinned", name, s.Image)
		}
		if s.Build != nil {
			exists(t, name, filepath.Join(s.Build.Context, s.Build.Dockerfile))
			if !s.ReadOnly || !slices.Contains(s.CapDrop, "ALL") {
				t.Errorf("%s could write or has capabilities", name)
			}
		}
		if (s.HealthCheck == nil || len(s.HealthCheck.Test) == 0) && s.Build == nil {
			t.Errorf("%s has no health check, and its image is not ours", name)
		}
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeBind {
				exists(t, name, v.Source)
				mounted[v.Target] = true
			} else if _, ok := p.Volumes[v.Source]; !ok {
				t.Errorf("%s: the volume %s is not kept", name, v.Source)
			}
		}
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to the world", name, port.Published)
			}
		}
	}
	for _, c := range p.Configs {
		exists(t, c.Name, c.File)
	}
	// What stands in deploy is what is mounted: nothing is a copy that grows old.
	for _, target := range []string{
		"/etc/prometheus/reconciler.rules.yml", "/etc/grafana/provisioning/dashboards/reconciler.yml", "/etc/grafana/reconciler/reconciler.json",
	} {
		if !mounted[target] {
			t.Errorf("nothing is mounted at %s", target)
		}
	}
	if data := p.Services["postgres"].Volumes; !slices.ContainsFunc(data, func(v types.ServiceVolumeConfig) bool {
		return v.Type == types.VolumeTypeVolume && v.Target == "/var/lib/postgresql/data"
	}) {
		t.Error("the ledger is in no volume: it would go with the container")
	}
}

func exists(t *testing.T, who, path string) {
	t.Helper()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("%s: %v", who, err)
	}
}

// The daemon starts when the schema is there, with the variables that the program reads, and
// every secret that it is given is one that its configuration or its address reads.
func TestTheServicesGetWhatTheProgramReads(t *testing.T) {
	p := project(t)
	reads := read(t, filepath.Join(root, "docs/config.md")) + read(t, filepath.Join(root, "docs/cli.md"))
	secrets := makeSecrets(t)
	config := read(t, filepath.Join(composeDir, "reconciler.yaml"))
	for _, name := range []string{"migrate", "reconciler"} {
		s := p.Services[name]
		text := config
		for variable, value := range s.Environment {
			if !strings.Contains(reads, variable) {
				t.Errorf("%s: nothing reads %s", name, variable)
			}
			text += "\n" + *value
		}
		for _, secret := range s.Secrets {
			if !strings.Contains(text, "/run/secrets/"+secret.Source) {
				t.Errorf("%s gets the secret %s and does not read it", name, secret.Source)
			}
		}
		login(t, name, *s.Environment["RECONCILER_DATABASE_URL"], secrets)
	}
	given := names(p.Services["reconciler"].Secrets)
	for _, file := range regexp.MustCompile(`/run/secrets/([a-z_]+)`).FindAllStringSubmatch(config, -1) {
		if !slices.Contains(given, file[1]) {
			t.Errorf("the configuration reads the secret %s and the daemon is not given it", file[1])
		}
	}
	for _, s := range p.Secrets {
		exists(t, s.Name, filepath.Join(secrets, filepath.Base(s.File)))
	}
	for service, after := range map[string]string{"migrate": types.ServiceConditionHealthy, "reconciler": types.ServiceConditionCompletedSuccessfully} {
		for other, d := range p.Services[service].DependsOn {
			if d.Condition != after {
				t.Errorf("%s starts when %s is %s, want %s", service, other, d.Condition, after)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "reconciler.yaml")
	write(t, path, strings.ReplaceAll(config, "/run/secrets/", secrets+"/"))
	if said := run(t, nil, "config", "check", "--config", path); strings.Contains(string(said), "note:") {
		t.Errorf("the configuration has notes:\n%s", said)
	}
}

func names(list []types.ServiceSecretConfig) []string {
	var all []string
	for _, s := range list {
		all = append(all, s.Source)
	}
	return all
}

// login holds the address of a service against the password file that it names.
func login(t *testing.T, service, url, secrets string) {
	t.Helper()
	cfg, err := pgx.ParseConfig(strings.ReplaceAll(url, "/run/secrets/", secrets+"/"))
	if err != nil {
		t.Fatal(err)
	}
	password := "postgres_password"
	if service == "reconciler" {
		password = "daemon_password"
	}
	if cfg.Host != "postgres" || cfg.Password == "" || cfg.Password != strings.TrimSpace(read(t, filepath.Join(secrets, password))) {
		t.Errorf("%s: %s does not lead to %s with its password", service, url, cfg.Host)
	}
}

// makeSecrets runs the script that makes them, twice: what is there stays.
func makeSecrets(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "secrets")
	for range 2 {
		cmd := exec.CommandContext(t.Context(), filepath.Join(composeDir, "secrets"))
		cmd.Env = append(os.Environ(), "SECRETS_DIR="+dir, "STRIPE_API_KEY=rk_live_TESTONLY", "STRIPE_WEBHOOK=whsec_TESTONLYTESTONLYTESTONLYTESTONLY",
			"SLACK_TOKEN=xoxb-TESTONLY", "SLACK_SIGNING=TESTONLYTESTONLYTESTONLYTESTONLY")
		before, _ := os.ReadFile(filepath.Join(dir, "daemon_password")) // the first time there is none
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if after := read(t, filepath.Join(dir, "daemon_password")); len(before) > 0 && string(before) != after || len(after) < 24 {
			t.Errorf("the password was %q and is %q", before, after)
		}
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the secrets is open: %v, %v", info.Mode(), err)
	}
	return dir
}

// Prometheus and Grafana find the daemon, the rules and each other under the names of the
// compose file.
func TestPrometheusAndGrafanaFindWhatTheyLookFor(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "prometheus.yml"), read(t, filepath.Join(composeDir, "prometheus.yml")))
	write(t, filepath.Join(dir, "reconciler.rules.yml"), read(t, "../prometheus/reconciler.rules.yml"))
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "config", filepath.Join(dir, "prometheus.yml")).CombinedOutput(); err != nil {
		t.Errorf("%v; run `make deps`\n%s", err, out)
	}
	var prometheus struct {
		Scrapes []struct {
			Job     string `yaml:"job_name"`
			Statics []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	parse(t, filepath.Join(composeDir, "prometheus.yml"), &prometheus)
	var config struct {
		Listen struct {
			Private string `yaml:"private"`
		} `yaml:"listen"`
	}
	parse(t, filepath.Join(composeDir, "reconciler.yaml"), &config)
	if got, want := prometheus.Scrapes[0].Statics[0].Targets, "reconciler"+config.Listen.Private; !slices.Equal(got, []string{want}) || prometheus.Scrapes[0].Job != "reconciler" {
		t.Errorf("Prometheus scrapes %v as %s, and the daemon listens at %s", got, prometheus.Scrapes[0].Job, want)
	}
	ours := read(t, filepath.Join(composeDir, "grafana-datasource.yml"))
	theirs := read(t, "../grafana/provisioning/datasources/reconciler.yml")
	if _, text, _ := strings.Cut(ours, "\n"); text != strings.Replace(theirs, "http://127.0.0.1:9090", "http://prometheus:9090", 1) {
		t.Errorf("the source of data is another than deploy/grafana's:\n%s", ours)
	}
	var boards struct {
		Providers []struct {
			Options struct {
				Path string `yaml:"path"`
			} `yaml:"options"`
		} `yaml:"providers"`
	}
	parse(t, "../grafana/provisioning/dashboards/reconciler.yml", &boards)
	if !slices.ContainsFunc(project(t).Services["grafana"].Volumes, func(v types.ServiceVolumeConfig) bool {
		return filepath.Dir(v.Target) == boards.Providers[0].Options.Path
	}) {
		t.Errorf("Grafana looks for dashboards in %s, and nothing is mounted there", boards.Providers[0].Options.Path)
	}
}

func parse(t *testing.T, path string, v any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, path)), v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
