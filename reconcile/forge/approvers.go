package forge

import (
	"context"
	"strconv"
	"strings"
)

// A list of approvers names users by name, or by ID: "id:4711". Users can change their names, and others can take former names. So a
// name stands for the user who has it when this process first reads comments. An ID stands for one user for good.

// idPrefix precedes an ID in a list of approvers.
const idPrefix = "id:"

// A userAPI finds users.
type userAPI interface {
	// userID returns the ID of the user with a name; 0 if there is none.
	userID(ctx context.Context, name string) (int64, error)
}

// approverName returns the name in an entry of a list of approvers; "" if it is an ID.
func approverName(entry string) string {
	if strings.HasPrefix(entry, idPrefix) {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(entry, "@"))
}

// identify finds the users of the names in a list, once. Forges without user names, or with names that only an administrator
// changes, have no userAPI.
func (p *Pulls) identify(ctx context.Context, approvers []string) error {
	api, ok := p.pullAPI.(userAPI)
	if !ok {
		return nil
	}
	for _, entry := range approvers {
		name := approverName(entry)
		if _, known := p.named[name]; known || name == "" {
			continue
		}
		id, err := api.userID(ctx, name)
		if err != nil {
			return err
		}
		if p.named == nil {
			p.named = map[string]int64{}
		}
		p.named[name] = id
	}
	return nil
}

// isListed reports whether the author of a comment is the user of an entry in a list of approvers.
func (p *Pulls) isListed(c comment, entry string) bool {
	if id, ok := strings.CutPrefix(entry, idPrefix); ok {
		return c.of != 0 && id == strconv.FormatInt(c.of, 10)
	}
	name := approverName(entry)
	if id, identified := p.named[name]; identified {
		return id != 0 && id == c.of
	}
	return c.isOf(name)
}
