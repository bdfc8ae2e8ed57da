package report

import (
	"strings"
	"testing"
)

// The glossary is for reviewers who see their first comment. A word without its explanation leaves them alone with it.
func TestGlossaryOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, visible string
		want            []string // the words that are explained
	}{
		"Nothing":    {reason: "Nothing has to be explained.", visible: "### ✅ Safe: changes 1 object\n"},
		"Active":     {reason: "A newcomer to Crossplane v2 knows CRDs.", visible: "Definitions after the merge: 2 active, 3 inactive.", want: []string{"definition"}},
		"Policy":     {reason: "The pattern is what to change.", visible: "- **Activates 21 definitions** by the policy `storage`", want: []string{"definition", "policy"}},
		"Storage":    {reason: "Lost fields are the danger.", visible: "- **Stores 3 kinds in another version, and nothing converts the objects.**", want: []string{"stores"}},
		"Webhook":    {reason: "It is a service that can be down.", visible: "1 kind gets a conversion webhook", want: []string{"stores"}},
		"Deprecated": {reason: "It still works.", visible: "### 👀 Look: deprecates a version of 1 kind", want: []string{"deprecated"}},
		"Held":       {reason: "It is not an error.", visible: "### ⛔ Blocked: holds 2 objects back", want: []string{"holds"}},
		"Pruned":     {reason: "It deletes.", visible: "prunes 2 objects", want: []string{"prune"}},
		"Dropped":    {reason: "The CRD remains, and nothing reconciles its objects.", visible: "drops 3 kinds; breaks 2 schemas", want: []string{"breaks", "drops"}},
		"Finding":    {reason: "It tells where to see them all.", visible: "- **2 findings:**", want: []string{"finding"}},
		"Warning":    {reason: "A warning is a finding.", visible: "adds 1 warning", want: []string{"finding"}},
		"OfACommit":  {reason: "Names of a commit are no words of ours.", visible: "changes `policy-that-breaks` [a](https://example.org/held/policy)"},
	} {
		t.Run(name, func(t *testing.T) {
			got := glossaryOf(tc.visible)
			if n := strings.Count(got, "\n- "); n != len(tc.want) {
				t.Errorf("%s\nglossaryOf(%q) explains %d words, not %d:\n%s", tc.reason, tc.visible, n, len(tc.want), got)
			}
			for _, word := range tc.want {
				if !strings.Contains(strings.ToLower(got), "**"+word) {
					t.Errorf("%s\nglossaryOf(%q) does not explain %q:\n%s", tc.reason, tc.visible, word, got)
				}
			}
		})
	}
}
