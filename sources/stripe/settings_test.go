package stripe

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
)

func key(s string) recon.Secret { return recon.NewSecret(s) }

func TestSettingsReportAllTheirFaults(t *testing.T) {
	t.Parallel()
	live := key("rk_live_1")
	tests := []struct {
		name   string
		set    Settings
		want   []string // paths
		unread bool     // a file is named and was not read, so that New has no key
	}{
		{"one account with a key holds", Settings{Account: "acct_1", Mode: "live", APIKey: live}, nil, false},
		{"account and mode have defaults", Settings{APIKey: live}, nil, false},
		{"a key that does not say its mode holds", Settings{Mode: "test", APIKey: key("gateway-token")}, nil, false},
		{"a file that is yet to be read holds", Settings{APIKeyFile: "/run/secrets/stripe"}, nil, true},
		{"a platform with a connected and a foreign account holds", Settings{APIKey: live, Accounts: []AccountSettings{
			{Account: "acct_2"}, {Account: "acct_3", Mode: "live", Connected: true}, {Account: "acct_4", Mode: "test", APIKeyFile: "f"}}}, nil, true},
		{"no key", Settings{}, []string{"api_key_file"}, false},
		{"no key for one of two", Settings{Accounts: []AccountSettings{{Account: "acct_1", APIKey: live}, {Account: "acct_2"}}}, []string{"api_key_file"}, false},
		{"a mode that is none", Settings{Mode: "prod", APIKey: live}, []string{"mode"}, false},
		{"a test key for live mode", Settings{APIKey: key("rk_test_1")}, []string{"mode"}, false},
		{"a live key for test mode", Settings{Accounts: []AccountSettings{{Account: "acct_1", Mode: "test", APIKey: live}}}, []string{"accounts[0].mode"}, false},
		{"both forms at once", Settings{Account: "acct_1", APIKey: live, Accounts: []AccountSettings{{Account: "acct_1"}}}, []string{"accounts"}, false},
		{"an account twice and one without a name", Settings{APIKey: live, Accounts: []AccountSettings{{Account: "acct_1"}, {Account: "acct_1", Connected: true}, {Connected: true}}},
			[]string{"accounts[1].account", "accounts[2].account"}, false},
		{"two accounts that one key cannot both open", Settings{APIKey: live, Accounts: []AccountSettings{{Account: "acct_1"}, {Account: "acct_2"}}}, []string{"accounts[1].api_key_file"}, false},
		{"an address that is none, a marker that is none, a negative rate", Settings{APIKey: live, APIURL: "api.stripe.com", Marker: `a"b`, PerSecond: -1}, []string{"api_url", "marker", "per_second"}, false},
		{"a webhook with two secrets and a tolerance holds", Settings{APIKey: live, Webhook: WebhookSettings{Secrets: []recon.Secret{key("whsec_1"), key("whsec_2")}, Tolerance: recon.Duration(time.Hour)}}, nil, false},
		{"a webhook whose files are yet to be read holds", Settings{APIKey: live, Webhook: WebhookSettings{SecretFiles: []string{"a", "b"}}}, nil, true},
		{"a webhook of a platform, its shops and its test mode holds", Settings{APIKey: live, Webhook: WebhookSettings{Secrets: []recon.Secret{key("whsec_1")}}, Accounts: []AccountSettings{
			{Account: "acct_1"}, {Account: "acct_1", Mode: "test", APIKey: key("rk_test_1")}, {Account: "acct_2", Connected: true}}}, nil, false},
		{"an empty secret and a negative tolerance", Settings{APIKey: live, Webhook: WebhookSettings{Secrets: []recon.Secret{key("whsec_1"), key("")}, Tolerance: -1}},
			[]string{"webhook.secrets[1]", "webhook.tolerance"}, false},
		{"a tolerance of days", Settings{APIKey: live, Webhook: WebhookSettings{Tolerance: recon.Duration(48 * time.Hour)}}, []string{"webhook.tolerance"}, false},
		{"a webhook for two accounts whose events do not name them", Settings{APIKey: live, Webhook: WebhookSettings{Secrets: []recon.Secret{key("whsec_1")}}, Accounts: []AccountSettings{
			{Account: "acct_1"}, {Account: "acct_2", APIKey: key("rk_live_2")}}}, []string{"accounts[1].account"}, false},
		{"an address with a password", Settings{APIKey: live, APIURL: "https://u:p@gateway"}, []string{"api_url"}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range tt.set.Validate() {
				got = append(got, f.Path)
				if strings.Contains(f.Error(), "rk_") || strings.Contains(f.Error(), "u:p") {
					t.Errorf("a fault shows a secret: %s", f)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			_, err := New("s", tt.set, Options{})
			if (err != nil) != (len(tt.want) > 0 || tt.unread) {
				t.Errorf("New: %v", err)
			}
		})
	}
}

func TestSecretsAreReadFromTheirFiles(t *testing.T) {
	t.Parallel()
	files := map[string]string{"a": " rk_live_1\n", "b": "rk_test_2", "w1": "whsec_1", "w2": "whsec_2\n", "empty": " \n"}
	read := func(name string) ([]byte, error) {
		if s, ok := files[name]; ok {
			return []byte(s), nil
		}
		return nil, errors.New("permission denied: /secret/path")
	}
	set := Settings{APIKeyFile: "a", Accounts: []AccountSettings{{Account: "acct_1"}, {Account: "acct_2", Mode: "test", APIKeyFile: "b"}},
		Webhook: WebhookSettings{SecretFiles: []string{"w1", "w2"}}}
	for range 2 {
		if faults := set.ReadSecrets(read); faults != nil {
			t.Fatal(faults)
		}
	}
	got := []string{set.APIKey.Reveal(), set.Accounts[1].APIKey.Reveal()}
	for _, s := range set.Webhook.Secrets {
		got = append(got, s.Reveal())
	}
	if diff := cmp.Diff([]string{"rk_live_1", "rk_test_2", "whsec_1", "whsec_2"}, got); diff != "" {
		t.Errorf("secrets (-want +got):\n%s", diff)
	}
	bad := Settings{APIKeyFile: "empty", Webhook: WebhookSettings{SecretFiles: []string{"none"}}}
	faults := bad.ReadSecrets(read)
	if len(faults) != 2 || faults[0].Path != "api_key_file" || faults[1].Path != "webhook.secret_files[0]" {
		t.Errorf("faults %v, want one for the empty file and one for the missing one", faults)
	}
}

func TestTheSheetFollowsTheSettings(t *testing.T) {
	t.Parallel()
	s, err := New("shops", Settings{APIKey: key("rk_live_1"), Lag: recon.Duration(10 * time.Second), Webhook: WebhookSettings{Secrets: []recon.Secret{key("whsec_1")}},
		Accounts: []AccountSettings{{Account: "acct_1"}, {Account: "acct_2", Connected: true}}}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	sheet := s.Sheet()
	list, _ := sheet.Ability(recon.ByList)
	if sheet.System != "shops" || sheet.Marker != "operation_id" || !sheet.Webhooks || sheet.PageSize != 100 || sheet.PerSecond != defaultPerSecondLive || list.Lag.Std() != 10*time.Second {
		t.Errorf("sheet is %+v", sheet)
	}
	if diff := cmp.Diff([]recon.Account{{Account: "acct_1", Mode: "live"}, {Account: "acct_2", Mode: "live"}}, sheet.Accounts); diff != "" {
		t.Errorf("accounts (-want +got):\n%s", diff)
	}
	for _, a := range sheet.Abilities {
		strong := a.Method == recon.ByID || a.Method == recon.ByList
		if strong != (a.Consistency == recon.Strong) {
			t.Errorf("%s is %s; only ids and top-level lists are strong", a.Method, a.Consistency)
		}
	}
}
