package httpapi_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources"
	"github.com/seed-1c4f4dc2/reconciler/sources/httpapi"
)

// paths gives the places of faults, each once.
func paths(faults []recon.Fault) []string {
	list := []string{}
	for _, f := range faults {
		list = append(list, f.Path)
	}
	return list
}

func TestSettingsTellEveryFaultAtOnce(t *testing.T) {
	f := newFake(t, "cursor", nil)
	for name, test := range map[string]struct {
		change func(*httpapi.Settings)
		want   []string
	}{
		"right":          {func(*httpapi.Settings) {}, []string{}},
		"nothing":        {func(s *httpapi.Settings) { *s = httpapi.Settings{} }, []string{"api_url", "effects"}},
		"an address":     {func(s *httpapi.Settings) { s.APIURL = "https://user:x@api.example.com/?a=b" }, []string{"api_url"}},
		"two rates":      {func(s *httpapi.Settings) { s.PerMinute = 6 }, []string{"per_second"}},
		"keys":           {func(s *httpapi.Settings) { s.Keys.HoldsOne = true }, []string{"keys.lifetime"}},
		"credentials":    {func(s *httpapi.Settings) { s.Headers = map[string]string{"authorization": "Bearer x"} }, []string{"headers"}},
		"half a success": {func(s *httpapi.Settings) { s.Success.Path = "ok" }, []string{"success"}},
		"two ways":       {func(s *httpapi.Settings) { s.Accounts[0].Auth.User = "u"; s.Accounts[0].Auth.PasswordFile = "p" }, []string{"accounts[0].auth.token"}},
		"no client":      {func(s *httpapi.Settings) { s.Accounts[1].Auth = httpapi.AuthSettings{TokenURL: "https://x.example"} }, []string{"accounts[1].auth.token_url"}},
		"a place twice":  {func(s *httpapi.Settings) { s.Accounts[1].Mode = "live" }, []string{"accounts[1].account"}},
		"a mode":         {func(s *httpapi.Settings) { s.Accounts[1].Mode = "sandbox" }, []string{"accounts[1].mode"}},
		"a kind twice":   {func(s *httpapi.Settings) { s.Effects = append(s.Effects, s.Effects[0]) }, []string{"effects[1].kind"}},
		"fields":         {func(s *httpapi.Settings) { s.Effects[0].Fields.ID = ""; s.Effects[0].Fields.CreatedAt = "" }, []string{"effects[0].fields.id", "effects[0].fields.created_at", "effects[0].fields.id"}},
		"a path":         {func(s *httpapi.Settings) { s.Effects[0].Fields.Status = "a..b" }, []string{"effects[0].fields.status"}},
		"no unit":        {func(s *httpapi.Settings) { s.Effects[0].Unit = "" }, []string{"effects[0].unit"}},
		"two currencies": {func(s *httpapi.Settings) { s.Effects[0].Currency = "EUR" }, []string{"effects[0].currency"}},
		"a word":         {func(s *httpapi.Settings) { s.Effects[0].Statuses["done"] = "ok" }, []string{"effects[0].statuses.done"}},
		"no words":       {func(s *httpapi.Settings) { s.Effects[0].Statuses = nil }, []string{"effects[0].statuses"}},
		"dates":          {func(s *httpapi.Settings) { s.Effects[0].Dates = "noon" }, []string{"effects[0].dates"}},
		"a style":        {func(s *httpapi.Settings) { s.Effects[0].Paging.Style = "scroll" }, []string{"effects[0].paging.style"}},
		"no paging":      {func(s *httpapi.Settings) { s.Effects[0].Paging = httpapi.PagingSettings{} }, []string{"effects[0].paging.style"}},
		"no cursor":      {func(s *httpapi.Settings) { s.Effects[0].Paging.Next = "" }, []string{"effects[0].paging.next"}},
		"no look-up": {func(s *httpapi.Settings) {
			e := &s.Effects[0]
			e.ByID, e.ByParent, e.List = httpapi.LookupSettings{}, httpapi.LookupSettings{}, httpapi.LookupSettings{}
		}, []string{"effects[0].by_reference"}},
		"worth":            {func(s *httpapi.Settings) { s.Effects[0].ByID.Consistency = "" }, []string{"effects[0].by_id.consistency"}},
		"not found":        {func(s *httpapi.Settings) { s.Effects[0].ByID.NotFound = httpapi.NotFoundSettings{} }, []string{"effects[0].by_id.not_found"}},
		"a server's fault": {func(s *httpapi.Settings) { s.Effects[0].ByID.NotFound = httpapi.NotFoundSettings{Status: 503} }, []string{"effects[0].by_id.not_found.status"}},
		"a refusal":        {func(s *httpapi.Settings) { s.Effects[0].ByID.NotFound = httpapi.NotFoundSettings{Status: 403} }, []string{"effects[0].by_id.not_found.status"}},
		"any reply":        {func(s *httpapi.Settings) { s.Effects[0].ByID.NotFound = httpapi.NotFoundSettings{Status: 200} }, []string{"effects[0].by_id.not_found.path"}},
		"no order":         {func(s *httpapi.Settings) { s.Effects[0].List.Order = "" }, []string{"effects[0].list.order"}},
		"everything":       {func(s *httpapi.Settings) { s.Effects[0].ByParent.Query = nil }, []string{"effects[0].by_parent.path"}},
		"another thing":    {func(s *httpapi.Settings) { s.Effects[0].ByID.Path = "/effects/{reference}" }, []string{"effects[0].by_id.path", "effects[0].by_id.path"}},
		"an unknown name":  {func(s *httpapi.Settings) { s.Effects[0].ByID.Path = "/effects/{id}/{user}" }, []string{"effects[0].by_id.path", "effects[0].by_id.path"}},
		"whose":            {func(s *httpapi.Settings) { s.Effects[0].Fields.Reference = ""; s.Effects[0].Fields.Key = "" }, []string{"effects[0].list.path"}},
		"a reach": {func(s *httpapi.Settings) {
			s.Effects[0].List.Until = httpapi.BoundSettings{}
			s.Effects[0].Paging.Reach = 100
		}, []string{"effects[0].list.until"}},
		"several at a time": {func(s *httpapi.Settings) { s.APIURL = ""; s.Effects[0].Kind = ""; s.Effects[0].Unit = "cents" }, []string{"api_url", "effects[0].kind", "effects[0].unit"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := f.settings()
			test.change(&s)
			got := paths(s.Validate())
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s\n%v", diff, s.Validate())
			}
			if _, err := httpapi.New("x", s, httpapi.Options{}); (err != nil) != (len(got) > 0) {
				t.Errorf("New gives %v with %d faults", err, len(got))
			}
		})
	}
}

func TestSecretsAreReadFromFilesAndNeverShown(t *testing.T) {
	s := httpapi.Settings{Auth: httpapi.AuthSettings{TokenFile: "token"}, Accounts: []httpapi.AccountSettings{
		{Account: "a", Auth: httpapi.AuthSettings{User: "u", PasswordFile: "password"}},
		{Account: "b", Auth: httpapi.AuthSettings{ClientSecretFile: "missing"}},
		{Account: "c", Auth: httpapi.AuthSettings{TokenFile: "empty"}},
	}}
	files := map[string]string{"token": " TESTONLY_t\n", "password": "TESTONLY_p", "empty": "\n"}
	faults := s.ReadSecrets(func(name string) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, errors.New("no such file")
		}
		return []byte(text), nil
	})
	if diff := cmp.Diff([]string{"accounts[1].auth.client_secret_file", "accounts[2].auth.token_file"}, paths(faults)); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if s.Auth.Token.Reveal() != "TESTONLY_t" || s.Accounts[0].Auth.Password.Reveal() != "TESTONLY_p" {
		t.Error("a secret is not what its file holds")
	}
	for _, f := range faults {
		if strings.Contains(f.Problem, "TESTONLY") {
			t.Errorf("a message shows a secret: %s", f.Problem)
		}
	}
}

func TestSheetTellsTheWeakestOfEachMethod(t *testing.T) {
	f := newFake(t, "cursor", func(s *httpapi.Settings) {
		s.PerMinute, s.PerSecond = 6, 0
		s.Keys = sources.KeySettings{Lifetime: recon.Duration(2 * 3600e9), RepeatAnswers: true, HoldsOne: true}
		other := s.Effects[0]
		other.Kind, other.ByID = "letter", httpapi.LookupSettings{}
		other.List.Consistency, other.List.Lag, other.List.History = "eventual", recon.Duration(600e9), recon.Duration(45*24*3600e9)
		other.ByParent = httpapi.LookupSettings{}
		other.Exponents = map[string]int{"UGX": 2}
		s.Effects = append(s.Effects, other)
	})
	got := f.open(t, httpapi.Options{}).Sheet()
	minute := recon.Duration(60e9)
	want := recon.Sheet{
		System: "shop-api", Marker: "operation_id", Kinds: []string{"letter", "payout"},
		Abilities: []recon.Ability{
			{Method: recon.ByID, Consistency: recon.Strong, Lag: minute, Kinds: []string{"payout"}},
			{Method: recon.ByList, Consistency: recon.Eventual, Lag: recon.Duration(600e9), History: recon.Duration(45 * 24 * 3600e9),
				NeedsMark: []recon.Mark{recon.MarkReference, recon.MarkKey}, Kinds: []string{"payout", "letter"}},
		},
		Accounts: []recon.Account{home, away}, KeyLifetime: recon.Duration(2 * 3600e9), RepeatAnswer: true, KeyHoldsOne: true,
		InFlightMax: 2 * minute, PageSize: 100, PerSecond: 0.1, Exponents: map[string]int{"UGX": 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sheet (-want +got):\n%s", diff)
	}
}
