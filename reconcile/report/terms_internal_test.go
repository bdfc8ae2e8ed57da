package report

import (
	"strings"
	"testing"
)

// The glossary helps reviewers who see their first comment. Every term in the comment must be explained.
func TestGlossaryOf(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, visible string
		want            []string // terms that are explained
	}{
		"Nothing":    {reason: "The comment contains no term.", visible: "### ✅ Safe: changes 1 object\n"},
		"Active":     {reason: "Newcomers to Crossplane v2 know CRDs but not definitions.", visible: "Definitions after the merge: 2 active, 3 inactive.", want: []string{"definition"}},
		"Policy":     {reason: "The reader needs to know what a policy's pattern does.", visible: "- **Activates 21 definitions** by the policy `storage`", want: []string{"definition", "policy"}},
		"Storage":    {reason: "The reader needs to know that fields may be lost.", visible: "- **Stores 3 kinds in another version, and nothing converts the objects.**", want: []string{"stores"}},
		"Webhook":    {reason: "The reader needs to know that a webhook is a service that may be down.", visible: "1 kind gets a conversion webhook", want: []string{"stores"}},
		"Deprecated": {reason: "The reader needs to know that a deprecated version still works.", visible: "### 👀 Look: deprecates a version of 1 kind", want: []string{"deprecated"}},
		"Held":       {reason: "The reader needs to know that a hold is not an error.", visible: "### ⛔ Blocked: holds 2 objects back", want: []string{"holds"}},
		"Pruned":     {reason: "The reader needs to know that a prune deletes.", visible: "prunes 2 objects", want: []string{"prune"}},
		"Dropped":    {reason: "The reader needs to know that the CRD stays and that nothing reconciles its objects.", visible: "drops 3 kinds; breaks 2 schemas", want: []string{"breaks", "drops"}},
		"Finding":    {reason: "The reader needs to know where all findings are listed.", visible: "- **2 findings:**", want: []string{"finding"}},
		"Warning":    {reason: "A warning is a finding.", visible: "adds 1 warning", want: []string{"finding"}},
		"OfACommit":  {reason: "Names in a commit are not terms.", visible: "changes `policy-that-breaks` [a](https://example.org/held/policy)"},
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
