package forge

import (
	"context"
	"testing"
)

// A usersOf answers which user has a name.
type usersOf struct {
	pullAPI

	ids   map[string]int64
	asked int
}

func (u *usersOf) userID(_ context.Context, name string) (int64, error) { //nolint:unparam // the interface has the error
	u.asked++
	return u.ids[name], nil
}

// A list of approvers names users. A name is the user who had it at first, and an ID is always one user.
func TestNamesOfListed(t *testing.T) {
	api := &usersOf{ids: map[string]int64{"ann": 1}}
	p := &Pulls{pullAPI: api}
	list := []string{"@Ann", "id:2", "gone"}
	if err := p.identify(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	api.ids = map[string]int64{"ann": 9, "gone": 9}
	if err := p.identify(t.Context(), list); err != nil || api.asked != 2 {
		t.Errorf("each name is asked for once: %d, %v", api.asked, err)
	}
	cases := map[string]struct {
		reason string
		by     comment
		want   bool
	}{
		"Name":      {"The user had the name at first.", comment{author: "ann", of: 1}, true},
		"Renamed":   {"The user has another name now.", comment{author: "anna", of: 1}, true},
		"Recycled":  {"Another user took the name.", comment{author: "ann", of: 9}, false},
		"ID":        {"The list has the ID.", comment{author: "bob", of: 2}, true},
		"NamedAsID": {"A name that looks like an ID is none.", comment{author: "id:2", of: 9}, false},
		"New":       {"Nobody had the name at first.", comment{author: "gone", of: 9}, false},
		"Unknown":   {"The forge does not report the ID.", comment{author: "gone"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			of := &conversation{Pulls: p, rules: Rules{Approvers: list}}
			if got := of.lists(tc.by); got != tc.want {
				t.Errorf("%s\nlists(%+v) = %t, want %t", tc.reason, tc.by, got, tc.want)
			}
		})
	}
}
