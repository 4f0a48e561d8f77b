// Package ledger is the PostgreSQL record of operations and of every conclusion about
// them: all tables but the inbox's, and all SQL that touches them.
//
// It promises that what it writes is whole or not there: a batch of conclusions with
// their looks, effects, findings and notices is one transaction ([Ledger.Record]); a
// conclusion about an operation that somebody else changed meanwhile is not written
// but reported as lost; and a holder that lost its source ([Ledger.HoldSource]) can
// write nothing more.
//
// It refuses to decide. Which state follows from which evidence is said by rules;
// the ledger only stores it. Where it finds that a decision rests on what is no
// longer so, it leaves the operation as it is and says so.
//
// Time is a parameter of every statement. The database's own clock
// ([Ledger.Now]) is read separately and judges leases only.
package ledger
