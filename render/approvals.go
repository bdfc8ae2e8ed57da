package render

import (
	"errors"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ApprovalsFile holds the approvals of a commit. It is at the root of the repository, so that one rule of CODEOWNERS
// protects it, whatever directories the Syncs read.
const ApprovalsFile = catalogue.ApprovalsFile

// MostApproved is the maximum number of digests in an ApprovalsFile: clusters remember the digests that they have used.
const MostApproved = 500

// mostUpTo is the maximum amount that an entry covers.
const mostUpTo = 1_000_000

// approvalsBytes is the maximum size of an ApprovalsFile.
const approvalsBytes = 128 << 10

// An Approval is an entry of ApprovalsFile. It lets held steps pass in every cluster that applies the commit.
type Approval struct {
	Digests []string // digests of single held steps, or of all held steps of a report
	By      string   // the approver that the entry names
	Why     string
	Expires metav1.Time
	UpTo    int // how many definitions and custom resources the steps may concern together; 0 for none
	Origin  manifest.Origin
}

// ReadApprovals parses the text of an ApprovalsFile.
func ReadApprovals(text string) ([]Approval, error) {
	at := manifest.Origin{Path: ApprovalsFile}
	if len(text) > approvalsBytes {
		return nil, catalogue.Errorf(at, "is larger than %d bytes; remove the approvals that are done or expired", approvalsBytes)
	}
	docs, err := manifest.NewReader(nil, manifest.Limits{}, nil).Inline(ApprovalsFile, text)
	if err != nil {
		return nil, catalogue.ErrorsOf(at, err)
	}
	all, problems := approvalsOf(docs)
	return all, problems.OrNil()
}

// approvals returns the entries of the ApprovalsFile of a commit.
func (in Input) approvals(limits manifest.Limits) ([]Approval, catalogue.Errors) {
	if in.Files == nil {
		return nil, nil
	}
	at := manifest.Origin{Path: ApprovalsFile}
	if _, err := fs.Stat(in.Files, ApprovalsFile); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	limits.FileBytes = approvalsBytes
	docs, err := manifest.Read(in.Files, ApprovalsFile, limits)
	if err != nil {
		return nil, catalogue.ErrorsOf(at, err)
	}
	return approvalsOf(docs)
}

func approvalsOf(docs []*manifest.Document) (all []Approval, problems catalogue.Errors) {
	for _, d := range docs {
		if id := d.Header.ID(); id.Kind != "Approvals" || d.Header.APIVersion != "headgate.dev/v1alpha1" {
			problems = append(problems, catalogue.Errorf(d.Origin, "is not of kind Approvals in headgate.dev/v1alpha1; write approvals with headgate approve --write"))
			continue
		}
		entries, refused := entriesOf(d)
		all, problems = append(all, entries...), append(problems, refused...)
	}
	given := 0
	for _, a := range all {
		if given += len(a.Digests); given > MostApproved {
			problems = append(problems, catalogue.Errorf(a.Origin, "the file holds more than %d digests; remove those that are done or expired", MostApproved))
			break
		}
	}
	return all, problems
}

func entriesOf(d *manifest.Document) ([]Approval, catalogue.Errors) {
	u, err := d.Recall()
	if err != nil {
		return nil, catalogue.ErrorsOf(d.Origin, err)
	}
	r := catalogue.Strict{Document: d}
	top := r.Object(u.Object, nil, "apiVersion", "kind", "metadata", "approvals")
	list, isList := top["approvals"].([]any)
	if !isList && top["approvals"] != nil {
		r.Refuse([]any{"approvals"}, "must be a list")
	}
	var all []Approval
	for i, v := range list {
		at := []any{"approvals", i}
		entry := r.Object(v, at, "digests", "by", "why", "expires", "upTo")
		if entry == nil {
			continue
		}
		a := Approval{By: r.Text(entry["by"], slices.Concat(at, []any{"by"})), Why: r.Text(entry["why"], slices.Concat(at, []any{"why"})), Origin: d.OriginOf(at...)}
		for j, digest := range r.List(entry["digests"], slices.Concat(at, []any{"digests"})) {
			here := slices.Concat(at, []any{"digests", j})
			text, _ := digest.(string)
			if !IsApprovalDigest(text) {
				r.Refuse(here, "is not a digest of 32 hexadecimal digits in quotes; copy it from the report that lists the held steps")
			}
			a.Digests = append(a.Digests, text)
		}
		expires, _ := entry["expires"].(string)
		if err := a.Expires.UnmarshalJSON([]byte(strconv.Quote(expires))); err != nil || a.Expires.IsZero() {
			r.Refuse(slices.Concat(at, []any{"expires"}), "must be a time such as 2026-01-31T12:00:00Z, after which the approval does not count")
		}
		if upTo, given := entry["upTo"]; given {
			n, isNumber := upTo.(int64)
			if !isNumber || n < 0 || n > mostUpTo {
				r.Refuse(slices.Concat(at, []any{"upTo"}), "must be a number from 0 to %d: how many definitions and custom resources the approval covers", mostUpTo)
			}
			a.UpTo = int(n)
		}
		all = append(all, a)
	}
	return all, catalogue.ErrorsOf(d.Origin, r.Problems.OrNil())
}

// IsApprovalDigest reports whether a text has the form of a digest of held steps.
func IsApprovalDigest(text string) bool {
	return len(text) == 32 && strings.Trim(text, "0123456789abcdef") == ""
}
