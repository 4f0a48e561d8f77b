package recon

import "time"

// Alarm is one finding as the planning of its notices sees it.
type Alarm struct {
	Finding Finding
	Opening int // how often it was opened
	// PausedUntil is the end of an acknowledgement or a snooze; zero: it is not paused.
	PausedUntil time.Time
	Incident    string    // the one that tells it; empty: it stands for itself
	Action      string    // of its operation; empty: it has none
	Since       time.Time // when its operation came into question; zero: not known
	// KeyExpiresAt is until when its operation may be repeated under its key; zero: no
	// repeat is possible or none is wanted.
	KeyExpiresAt time.Time
	Told         []ToldStep // what of this opening was planned before
	Beside       []Finding  // other open findings on its operations that stand for themselves
	// Planned is the version of the finding that was planned last, and PlanAt when it was
	// to be planned again. Both guard the new plan against one of another process.
	Planned int64
	PlanAt  time.Time
}

// ToldStep is a step that was planned for a destination.
type ToldStep struct {
	Step        string
	Destination string
}

// Telling is what follows for one alarm or incident: who is told now, and when to
// plan it again.
type Telling struct {
	Finding  string // the id of the alarm's finding, or
	Incident string // that of the incident
	Notices  []Notice
	Level    int       // how many steps of its ladder have come due
	Next     time.Time // when to plan it again; zero: when it changes
	Reason   string    // why so
	// Resume ends a pause that is over.
	Resume bool
	// Wake plans the other findings on its operations again.
	Wake bool
	// Full ends the taking in of an incident, and Over the incident itself, which told
	// Total findings of which Open are left.
	Full, Over  bool
	Total, Open int
	Shown       string // what the incident's messages show once they are delivered
	// The guards, as they were read.
	Version, Planned int64
	PlanAt           time.Time
}

// Told is what a message about a finding shows.
type Told struct {
	Finding Finding
	// Story is that of its first operation. A finding without one has only the effects
	// that it names.
	Story       Story
	Assignee    string
	PausedUntil time.Time // the end of an acknowledgement or a snooze
	Proposal    *Proposal // what waits for a second person; nil: nothing
	Alarm       Alarm     // the same finding as the planning of its notices sees it
}

// Crowd is how many findings of one kind at one source wait to be told for the first
// time or were opened a moment ago.
type Crowd struct {
	Source SourceName
	Kind   FindingKind
	Count  int
	Down   bool // the source cannot be asked
	// Incident is one of the kind that takes in at this moment, and Joined when it last
	// did; DownIncident is one about the source.
	Incident     string
	Joined       time.Time
	DownIncident string
}

// Fold puts a crowd under one incident.
type Fold struct {
	Source SourceName
	Kind   FindingKind // whose findings are taken in
	As     FindingKind // the kind of the incident: Kind, or FindBlind for a source that is down
	Reason string
}

// Incident is many findings that are told as one: those of a kind at a source that
// opened together, or those that wait for a source which cannot be asked.
type Incident struct {
	ID       string
	Source   SourceName
	Kind     FindingKind // FindBlind: the source cannot be asked
	OpenedAt time.Time
	JoinedAt time.Time // when it last took findings in
	FullAt   time.Time // since when it takes in no more; zero: it still does
	EndedAt  time.Time // zero: it is open
	Actions  []string  // of its operations
	// DownSince is since when the source cannot be asked; zero: it can.
	DownSince time.Time
	// UpSince is since when it can be asked again; zero: it cannot, or never was down.
	UpSince time.Time
	Fault   string // why it cannot be asked, in words

	Total, Open int            // findings taken in, and those still open
	Succeeded   int            // operations of ended ones that succeeded by now
	Oldest      time.Time      // since when the oldest open one is in question
	Money       []Money        // at risk in open ones, one sum per currency
	KeyExpires  time.Time      // until when all of them may be repeated under their keys; zero: none has one
	Top         []Member       // the oldest open ones
	Exponents   map[string]int // the source's own decimals of currencies

	Told   []ToldStep
	Shown  string // what its messages show
	PlanAt time.Time
}

// Member is one finding of an incident.
type Member struct {
	Finding    string
	Operation  OperationID
	Target     string
	Money      Money
	Since      time.Time
	KeyExpires time.Time
}

// Digest is how findings stood at one moment, and what changed in the day before.
type Digest struct {
	Day           string
	From, At      time.Time
	Kinds         []DigestKind   // those with something to say, gravest first
	Opened, Ended int            // since From
	Undelivered   int            // notices that a destination would not take
	Down          []SourceName   // sources that cannot be asked
	Exponents     map[string]int // the sources' own decimals of currencies
}

// DigestKind is one line of a digest.
type DigestKind struct {
	Kind     FindingKind
	Open     int
	Assigned int
	Oldest   time.Time
	Money    []Money
	Opened   int // since the day before
	Ended    int
}

// DayReport is what is told of the report of a day; its files hold everything.
type DayReport struct {
	Day     string // as DateOnly, of Zone
	Zone    string
	Verdict string // what it comes to, in words

	Operations, Effects int // opened, and made, on the day

	Findings  []DayFindings  // gravest first
	Money     []DayMoney     // by currency
	Gaps      []string       // what was not audited or not seen, each in words; the first of them
	MoreGaps  int            // how many more there are
	Page      string         // where its page is, as a path on the machine that wrote it; empty: it could not be written
	Exponents map[string]int // the sources' own decimals of currencies
}

// DayFindings counts the findings of a kind in a report.
type DayFindings struct {
	Kind       FindingKind
	Open, Over int
}

// DayMoney are the operations of a day in one currency, in minor units.
type DayMoney struct {
	Currency  string
	Count     int
	Minor     int64 // of all
	DoneCount int
	DoneMinor int64 // of those that succeeded
}
