package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// roles of people, each with what the one before may.
var roles = []string{"viewer", "operator", "approver"}

// slackUser is a Slack workspace and a user in it: a user's id alone may be another
// person's elsewhere.
var slackUser = regexp.MustCompile(`^[TE][A-Z0-9]{1,30}/[UW][A-Z0-9]{1,30}$`)

// people checks who may act, and above which amounts two of them must agree. One account
// is one person's; two names for one person would let them approve themselves.
func (d *decoder) people(doc file, c *Config) {
	owners, roleOf, spelled := map[string]string{}, map[string]string{}, map[string]string{}
	for i, p := range doc.People {
		at := fmt.Sprintf("people[%d]", i)
		if p.Name == "" || len(p.Name) > 200 {
			d.fault(nil, at+".name", "is required, as text of at most 200 bytes")
		}
		if p.Role == "" {
			p.Role = roles[0]
		}
		if !slices.Contains(roles, p.Role) {
			d.fault(nil, at+".role", "%q is not one of viewer, operator, approver", p.Role)
		}
		if before, twice := roleOf[p.Name]; twice && before != p.Role {
			d.fault(nil, at+".role", "%s is %s here and %s before; one person has one role", p.Name, p.Role, before)
		}
		roleOf[p.Name] = p.Role
		folded := strings.ToLower(strings.Join(strings.Fields(p.Name), " "))
		if before, known := spelled[folded]; known && before != p.Name {
			d.fault(nil, at+".name", "%q is %q once more, written in another way; one person has one name", p.Name, before)
		}
		spelled[folded] = p.Name
		if p.Slack != "" && !slackUser.MatchString(p.Slack) {
			d.fault(nil, at+".slack", "%q is no Slack user; write workspace and user, such as T012AB3C4/U061F7AUR", p.Slack)
		}
		for key, account := range map[string]string{"slack": p.Slack, "db_role": p.DBRole} {
			owner, taken := owners[key+account]
			if account != "" && taken {
				d.fault(nil, at+"."+key, "%q is already an account of %s; an account belongs to one person", account, owner)
			}
			owners[key+account] = p.Name
		}
		c.People = append(c.People, p)
	}
	c.ApproveAbove = d.amounts("escalation.approve_above", doc.Escalation.ApproveAbove)
	approvers := 0
	for _, role := range roleOf {
		if role == "approver" {
			approvers++
		}
	}
	if len(c.ApproveAbove) > 0 && approvers < 2 {
		d.note("escalation.approve_above", fmt.Sprintf("takes two approvers, and people names %d", approvers))
	}
}
