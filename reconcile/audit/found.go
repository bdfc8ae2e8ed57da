package audit

import "headgate.dev/headgate/reconcile/report"

// Refused returns the entries for approvals that a pass found and that approve nothing, wherever they were given: they fit nothing that is
// held, cover too little, were used or expired, or the author of the change wrote them.
func Refused(r report.Report) []Entry {
	var all []Entry
	for _, f := range r.Findings {
		if f.Rule == "approval" && f.About.Subject != "" {
			all = append(all, Entry{Event: ApprovalRefused, Sync: r.Sync.String(), Commit: r.Revision, Digest: f.About.Subject, Reason: f.Message})
		}
	}
	return all
}
