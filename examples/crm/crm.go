// Package crm is a small CRM for the worked configuration beside it. Records are made and
// changed under an external id; they are read there at once, and found by the search only
// after a while.
package crm

import (
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Record is a record as the CRM shows it.
type Record struct {
	ID         string      `json:"Id"`
	OpID       string      `json:"Op_Id__c"`
	Amount     json.Number `json:"Amount"`
	Currency   string      `json:"CurrencyIsoCode"`
	CreatedAt  time.Time   `json:"CreatedDate"`
	ModifiedAt time.Time   `json:"LastModifiedDate"`
}

// CRM holds records by external id. Its zero value is empty and ready.
type CRM struct {
	mu      sync.Mutex // guards what follows
	records []*Record
	several map[string]bool // external ids that more than one record bears
}

// Upsert makes or changes the record of an external id, as a sender's PATCH does, and gives
// its id.
func (c *CRM) Upsert(opID string, amount json.Number, currency string, at time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	at = at.UTC().Truncate(time.Second)
	for _, r := range c.records {
		if r.OpID == opID {
			r.Amount, r.Currency, r.ModifiedAt = amount, currency, at
			return r.ID
		}
	}
	r := &Record{ID: "006000000" + strconv.Itoa(len(c.records)+1), OpID: opID, Amount: amount, Currency: currency, CreatedAt: at, ModifiedAt: at}
	c.records = append(c.records, r)
	return r.ID
}

// Confuse lets an external id be that of several records.
func (c *CRM) Confuse(opID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.several == nil {
		c.several = map[string]bool{}
	}
	c.several[opID] = true
}

// Handler routes the CRM's addresses. Its search has seen nothing yet.
func (c *CRM) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sobjects/Opportunity/Op_Id__c/{op}", func(w http.ResponseWriter, r *http.Request) {
		c.show(w, func(record *Record) bool { return record.OpID == r.PathValue("op") }, r.PathValue("op"))
	})
	mux.HandleFunc("GET /sobjects/Opportunity/{id}", func(w http.ResponseWriter, r *http.Request) {
		c.show(w, func(record *Record) bool { return record.ID == r.PathValue("id") }, "")
	})
	mux.HandleFunc("GET /search/opportunities", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]any{"records": []Record{}, "more": false, "nextRecordsUrl": nil})
	})
	return mux
}

func (c *CRM) show(w http.ResponseWriter, is func(*Record) bool, opID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.several[opID] {
		answer(w, http.StatusMultipleChoices, []string{"/sobjects/Opportunity/0061", "/sobjects/Opportunity/0062"})
		return
	}
	for _, r := range c.records {
		if is(r) {
			answer(w, http.StatusOK, r)
			return
		}
	}
	answer(w, http.StatusNotFound, []map[string]string{{"errorCode": "NOT_FOUND", "message": "The requested resource does not exist"}})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
