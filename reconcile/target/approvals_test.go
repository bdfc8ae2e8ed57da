package target

import (
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"headgate.dev/headgate/reconcile"
)

// What a forge cannot report is an error when the Sync is loaded, and not when an approval is missing.
func TestApprovalsNeedTheForge(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		forge  string
		spec   string
		listed bool   // comments count
		warns  string // when it is loaded
		wrong  string // error
	}{
		"GitHub":     {reason: "It reports who may write.", forge: "GitHub", listed: true},
		"Default":    {reason: "The Sync asks for nothing, and a user may wait for an answer.", forge: "AzureDevOps", warns: "list the approvers in spec.approvals.approvers"},
		"Listed":     {reason: "A list says who may approve.", forge: "BitbucketDataCenter", spec: "  approvals: {approvers: [bob]}\n", listed: true},
		"AccountID":  {reason: "In the Cloud, the name is an id.", forge: "Bitbucket", spec: "  approvals: {approvers: ['557058:ba8948b2-49da-43a9-9e8b-e7249b8e324a']}\n", listed: true},
		"Never":      {reason: "The Sync asks for none.", forge: "Bitbucket", spec: "  approvals: {comments: Never}\n"},
		"Asked":      {reason: "The Sync asks for comments.", forge: "Bitbucket", spec: "  approvals: {comments: Count}\n", wrong: "list the approvers"},
		"ByAuthor":   {reason: "It asks for those of authors.", forge: "Bitbucket", spec: "  approvals: {byAuthor: Allow}\n", wrong: "list the approvers"},
		"Reviews":    {reason: "It asks for reviews, which show too little there.", forge: "AzureDevOps", spec: "  approvals: {reviews: true, approvers: [bob@example.org]}\n", wrong: "reviews do not count"},
		"HubReviews": {reason: "Here they show enough.", forge: "GitHub", spec: "  approvals: {reviews: true}\n", listed: true},
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
