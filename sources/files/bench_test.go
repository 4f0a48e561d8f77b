package files_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/seed-1c4f4dc2/reconciler/recon"
	"github.com/seed-1c4f4dc2/reconciler/sources/files"
)

// benchSettings read what benchFile writes.
var benchSettings = files.Settings{
	Format: "bench", System: "stripe", Unit: "minor", Dates: "rfc3339", Kind: "refund", Account: "acct_1",
	Columns: files.Columns{ID: "id", Reference: "reference", Key: "key", Parent: "parent", Amount: "amount", Currency: "currency",
		Status: "status", CreatedAt: "created_at"},
	Statuses: map[string]string{"succeeded": "completed", "pending": "in_flight", "failed": "failed"},
}

func benchFile(n int) []byte {
	var b bytes.Buffer
	b.WriteString("id,reference,key,parent,amount,currency,status,created_at\n")
	at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range n {
		fmt.Fprintf(&b, "re_%012x,op_%09d,key-%016x,ch_%012x,%d,usd,succeeded,%s\n", i*7919, i, i*104729, i*15485863, 100+i%999899,
			at.Add(time.Duration(i)*time.Second).Format(time.RFC3339))
	}
	return b.Bytes()
}

// BenchmarkOperations reads rows of a CSV into operations.
func BenchmarkOperations(b *testing.B) {
	const n = 100_000
	text := bytes.NewBufferString("id,source,action,target,key,effect_id,parent,amount,currency,state,created_at\n")
	for i := range n {
		fmt.Fprintf(text, "op_%09d,provider,payment.create,order:%d,k_%024x,pi_%024x,,%d,usd,succeeded,2026-03-01T10:00:%02dZ\n", i, i, i*104729, i*7919, 100+i%999899, i%60)
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		r := files.OpenOperations(bytes.NewReader(text.Bytes()), "bench.csv", nil)
		rows := 0
		for op := new(recon.Operation); r.Next(op); {
			rows++
		}
		if r.Err() != nil || rows != n {
			b.Fatalf("%d rows: %v", rows, r.Err())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
}

// BenchmarkReader reads rows of a CSV into effects, beside the balance report of Stripe.
func BenchmarkReader(b *testing.B) {
	const n = 100_000
	report := bytes.NewBufferString("created_utc,currency,gross,fee,net,reporting_category,source_id,charge_id,refund_metadata[operation_id],description\n")
	for i := range n {
		fmt.Fprintf(report, "2026-03-01 10:00:%02d,eur,-%d.%02d,0.00,-%d.%02d,refund,re_%012x,ch_%012x,op_%09d,REFUND FOR CHARGE\n", i%60, i, i%100, i, i%100+0, i, i, i)
	}
	for _, f := range []struct {
		name string
		s    files.Settings
		text []byte
	}{{"columns", benchSettings, benchFile(n)}, {"stripe-balance", files.Settings{Format: files.StripeBalance}, report.Bytes()}} {
		b.Run(f.name, func(b *testing.B) {
			format, err := files.FormatOf("s", f.s)
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(f.text)))
			b.ReportAllocs()
			for b.Loop() {
				r := files.Open(format, bytes.NewReader(f.text), "bench.csv")
				rows := 0
				for row := new(files.Row); r.Next(row); rows++ {
					if row.Outcome == files.Refused && row.Effect.ID != "" {
						b.Fatal(row.Reason)
					}
				}
				if r.Err() != nil || rows != n {
					b.Fatalf("%d rows: %v", rows, r.Err())
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
