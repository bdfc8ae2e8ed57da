package target

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"headgate.dev/headgate/reconcile"
)

// If a forge cannot provide what a Sync requires, that is an error when the Sync is loaded, not when an approval is missing.
func TestApprovalsNeedTheForge(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		forge  string
		spec   string
		listed bool   // comments count
		warns  string // warning when the Sync is loaded
		wrong  string // error
	}{
		"GitHub":     {reason: "GitHub reports who has write permission.", forge: "GitHub", listed: true},
		"Default":    {reason: "The Sync sets nothing, but its users may wait for an answer to a comment.", forge: "AzureDevOps", warns: "list the approvers in spec.approvals.approvers"},
		"Listed":     {reason: "The list names the approvers.", forge: "BitbucketDataCenter", spec: "  approvals: {approvers: [bob]}\n", listed: true},
		"AccountID":  {reason: "In Bitbucket Cloud, users are listed by account ID.", forge: "Bitbucket", spec: "  approvals: {approvers: ['557058:ba8948b2-49da-43a9-9e8b-e7249b8e324a']}\n", listed: true},
		"Never":      {reason: "The Sync does not accept comments.", forge: "Bitbucket", spec: "  approvals: {comments: Never}\n"},
		"Asked":      {reason: "The Sync accepts comments without naming approvers.", forge: "Bitbucket", spec: "  approvals: {comments: Count}\n", wrong: "list the approvers"},
		"ByAuthor":   {reason: "The Sync accepts the author's comments without naming approvers.", forge: "Bitbucket", spec: "  approvals: {byAuthor: Allow}\n", wrong: "list the approvers"},
		"Reviews":    {reason: "The Sync accepts reviews, but Azure DevOps does not reveal enough about them.", forge: "AzureDevOps", spec: "  approvals: {reviews: true, approvers: [bob@example.org]}\n", wrong: "reviews do not count"},
		"HubReviews": {reason: "GitHub reveals enough about reviews.", forge: "GitHub", spec: "  approvals: {reviews: true}\n", listed: true},
	} {
		t.Run(name, func(t *testing.T) {
			warned := ""
			in := Surroundings{
				Cluster: &rest.Config{Host: "https://nowhere.example.org"}, Getenv: func(string) string { return canary }, Cache: t.TempDir(),
				Event: func(e reconcile.Event) {
					if e.Kind == reconcile.Unheard {
						warned += e.Err.Error()
					}
				},
			}
			target, err := New(decode(t, "  clusterName: east\n  previews: true\n  statuses: {forge: "+tc.forge+"}\n  source: {repo: \"https://git.example.org/acme/platform.git\"}\n"+tc.spec), in)
			if (err == nil) != (tc.wrong == "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Fatalf("%s\n%v", tc.reason, err)
			}
			if (warned == "") != (tc.warns == "") || !strings.Contains(warned, tc.warns) {
				t.Errorf("%s\nwarned %q", tc.reason, warned)
			}
			if err == nil && (target.Loop.Reconciler.OnForge != nil) != tc.listed {
				t.Errorf("%s\npasses ask the forge: %t", tc.reason, !tc.listed)
			}
		})
	}
}
