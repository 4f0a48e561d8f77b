package slack

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	slackgo "github.com/slack-go/slack"

	"github.com/seed-1c4f4dc2/reconciler/escalation"
	"github.com/seed-1c4f4dc2/reconciler/recon"
)

// reply makes an answer in the thread of a message: why people are called again, and
// what they must know at once. The message itself holds the rest.
func (n *Notifier) reply(m escalation.Message) rendered {
	title, facts, over := n.summary(m)
	why := "🔴 Still open " + bare(m.Step)
	switch {
	case over:
		why = "⚪ Ended meanwhile"
	case m.Reason == escalation.PauseOver:
		why = "🔴 It was taken care of, and is still open"
	}
	r := rendered{Text: plain(why+": "+title, 700)}
	line := "*" + escape.Replace(recon.Shorten(why, 200)) + "*"
	called := m.Mention
	if _, known := n.people[m.Assignee]; known && !slices.Contains(called, m.Assignee) {
		called = append(slices.Clone(called), m.Assignee) // whose it is must know
	}
	if calls := n.calls(called); calls != "" && !over {
		line = calls + " " + line
	}
	r.add(mrkdwn(line), text(plain(first(title), 600)), refused(m), repeat(m), text(lines(facts, 1200)))
	return r
}

// summary is a message in a few lines, and whether nobody is needed any more.
func (n *Notifier) summary(m escalation.Message) (title string, facts []string, over bool) {
	if m.Incident != nil {
		i := incident{m, *m.Incident, n.zone}
		return i.title(), i.facts(), !i.EndedAt.IsZero()
	}
	v := newView(m, n.zone)
	if !v.About.Open() {
		_, how := v.Story.Ending(v.About)
		return v.title(), []string{first(recon.Shorten(how, 600))}, true
	}
	facts = []string{first(kindText(v.About.Kind)) + "."}
	if safe := v.safeRetry(); safe != "" {
		facts = append(facts, first(safe)+".")
	}
	if v.hasOperation() {
		facts = append(facts, v.next())
	}
	if v.Assignee != "" {
		facts = append(facts, "Assigned to "+recon.Shorten(v.Assignee, 100)+".")
	}
	return v.title(), facts, false
}

var (
	userID  = regexp.MustCompile(`^[UW][A-Z0-9]{2,20}$`)
	groupID = regexp.MustCompile(`^S[A-Z0-9]{2,20}$`)
)

// calls writes names so that Slack calls them: a user, a user group, or here, channel
// and everyone. A name that stands for none of them is shown and calls nobody.
func (n *Notifier) calls(names []string) string {
	var list []string
	for _, name := range names {
		list = append(list, n.call(name))
	}
	return strings.Join(list, " ")
}

// addressed reports whether a name is itself one that Slack calls.
func addressed(name string) bool {
	return userID.MatchString(name) || groupID.MatchString(name) || name == "here" || name == "channel" || name == "everyone"
}

func (n *Notifier) call(name string) string {
	id := name
	if known, ok := n.settings.Mentions[name]; ok {
		id = known
	} else if known, ok := n.people[name]; ok {
		id = known[strings.LastIndex(known, "/")+1:] // T1/U1: the user of a workspace
	}
	switch {
	case userID.MatchString(id):
		return "<@" + id + ">"
	case groupID.MatchString(id):
		return "<!subteam^" + id + ">"
	case addressed(id):
		return "<!" + id + ">"
	}
	return code("@"+name, 80)
}

// link leads to a page of one's own.
func (n *Notifier) link() slackgo.Block {
	if n.settings.Link == "" {
		return nil
	}
	return mrkdwn(fmt.Sprintf("<%s|Open>", escape.Replace(n.settings.Link)))
}
