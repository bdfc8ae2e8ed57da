package report

import "headgate.dev/headgate/reconcile/legible"

// Suspend returns the report of a sync that writes nothing for now, and why.
func (r Report) Suspend(why string) Report {
	r.Suspended = legible.Line(why)
	r.Verdict = verdict(r)
	return r
}

// Into returns the report of a pull request into a branch whose sync writes nothing for now, and why; "" if it writes.
func (r Report) Into(suspended string) Report {
	if r.Preview != nil {
		r.Preview.Suspended = legible.Line(suspended)
	}
	return r
}

// Withheld returns the number of changes that a suspension keeps from the cluster.
func (r Report) Withheld() int {
	if r.Suspended == "" {
		return 0
	}
	return r.Summary.Created + r.Summary.Updated + r.Summary.Pruned + r.Summary.Deactivated
}
