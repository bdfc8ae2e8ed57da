package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/render"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// approvalToWrite holds the flags of approve --write.
type approvalToWrite struct {
	on      bool
	by, why string
	expires time.Duration
	report  string
	repo    string
}

func (a *approvalToWrite) addTo(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.on, "write", false, "add the approval to "+render.ApprovalsFile+" of a checkout")
	cmd.Flags().StringVar(&a.by, "by", "", "with --write: `who` approves")
	cmd.Flags().StringVar(&a.why, "why", "", "with --write: the `reason`, for reviewers")
	addLapse(cmd, &a.expires, "expires", 7*24*time.Hour, "with --write: `time` from now after which the approval does not count")
	cmd.Flags().StringVar(&a.report, "report", "", "with --write: `file` with a report in JSON, whose held steps are approved one by one; - reads standard input")
	cmd.Flags().StringVar(&a.repo, "repo", ".", "with --write: root `directory` of the checkout")
}

// writeApproval adds an entry to the file of approvals of a checkout.
func (t *terminal) writeApproval(a approvalToWrite, args []string) (err error) {
	switch {
	case a.by == "":
		return usagef("name who approves: --by WHO")
	case a.why == "":
		return usagef("give the reason: --why TEXT")
	}
	given, err := digests(strings.Join(args, " "))
	if err != nil {
		return usagef("%w", err)
	}
	if a.report != "" {
		more, err := t.digestsOf(a.report)
		if err != nil {
			return err
		}
		given = append(given, more...)
	}
	if len(given) == 0 {
		return usagef("give digests of held steps, or --report")
	}
	entry := render.Approval{By: a.by, Why: a.why, Expires: metav1.NewTime(time.Now().Add(a.expires).UTC().Truncate(time.Second))}
	for _, one := range given {
		entry.Digests = append(entry.Digests, one.Digests...)
		entry.UpTo += one.UpTo
	}
	slices.Sort(entry.Digests)
	entry.Digests = slices.Compact(entry.Digests)
	if _, err := os.Lstat(filepath.Join(a.repo, ".git")); err != nil {
		return usagef("%s is not the root of a checkout: it has no .git; name the root with --repo", a.repo)
	}
	root, err := os.OpenRoot(a.repo) // a commit may contain a symlink that points outside it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	before, all, err := approvalsIn(root)
	if err != nil {
		return err
	}
	after, err := withApproval(before, all, entry)
	if err != nil {
		return fmt.Errorf("%s: cannot be edited here (%w); write into it, below approvals:\n%s", render.ApprovalsFile, err, listed(entry, ""))
	}
	if err := replaceIn(root, render.ApprovalsFile, after); err != nil {
		return err
	}
	_, err = fmt.Fprintf(t.out, "%s: %s approves %d digests until %s; commit the file\n", filepath.Join(a.repo, render.ApprovalsFile), printable(a.by), len(entry.Digests), entry.Expires.Format(time.RFC3339))
	return err
}

// digestsOf returns approvals of the held steps of a report in JSON, with their amounts.
func (t *terminal) digestsOf(file string) ([]approval.Approval, error) {
	var data []byte
	var err error
	if file == "-" {
		data, err = io.ReadAll(t.in)
	} else {
		data, err = os.ReadFile(file)
	}
	if err != nil {
		return nil, err
	}
	type digested struct {
		Digest  string   `json:"digest"`
		Digests []string `json:"digests"`
		UpTo    int      `json:"upTo"`
	}
	var decoded struct {
		Steps    []digested `json:"steps"`
		Upgrades []digested `json:"upgrades"`
	}
	if err := json.Unmarshal(data, &decoded); err != nil {
		return nil, fmt.Errorf("%s: cannot read the report: %w; write it with -o json", file, err)
	}
	var all []approval.Approval
	for _, s := range append(decoded.Steps, decoded.Upgrades...) {
		one := approval.Approval{Digests: s.Digests, UpTo: s.UpTo} // a cluster may ask only for some of them
		switch {
		case s.Digest == "":
			continue
		case len(s.Digests) == 0:
			one.Digests = []string{s.Digest}
		}
		all = append(all, one)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: the report holds nothing that can be approved", file)
	}
	return all, nil
}

// approvalsIn returns the file of approvals and its entries. It follows no symbolic link.
func approvalsIn(root *os.Root) ([]byte, []render.Approval, error) {
	for _, name := range []string{path.Dir(render.ApprovalsFile), render.ApprovalsFile} {
		info, err := root.Lstat(filepath.FromSlash(name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil, nil
		case err != nil:
			return nil, nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			return nil, nil, fmt.Errorf("%s is a symbolic link; replace it by its target", name)
		}
	}
	data, err := root.ReadFile(filepath.FromSlash(render.ApprovalsFile))
	if err != nil {
		return nil, nil, err
	}
	all, err := render.ReadApprovals(string(data))
	return data, all, err
}

// withApproval returns a file of approvals with one more entry at its end. All other bytes stay unchanged.
func withApproval(file []byte, before []render.Approval, entry render.Approval) ([]byte, error) {
	text := string(file)
	if strings.TrimSpace(text) == "" {
		text = schemaOf("approvals") + "apiVersion: headgate.dev/v1alpha1\nkind: Approvals\napprovals:\n"
	}
	indent := ""
	var document yaml.Node
	if err := yaml.Unmarshal([]byte(text), &document); err != nil {
		return nil, err
	}
	if _, list := entryOf(document.Content[0], "approvals"); list != nil && len(list.Content) > 0 && list.Column > 0 {
		indent = strings.Repeat(" ", list.Column-1)
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += listed(entry, indent)
	after, err := render.ReadApprovals(text)
	if err != nil {
		return nil, err
	}
	if len(after) != len(before)+1 {
		return nil, errors.New("the edit would change other entries")
	}
	for i, want := range append(slices.Clone(before), entry) {
		after[i].Origin, want.Origin = entry.Origin, entry.Origin
		if !want.Expires.Equal(&after[i].Expires) {
			return nil, errors.New("the edit would change other entries")
		}
		after[i].Expires = want.Expires
		if !reflect.DeepEqual(after[i], want) {
			return nil, errors.New("the edit would change other entries")
		}
	}
	return []byte(text), nil
}

// listed returns an entry as a YAML list item. Strings are quoted: a digest may look like a number.
func listed(a render.Approval, indent string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s- digests:\n", indent)
	for _, d := range a.Digests {
		fmt.Fprintf(&b, "%s  - %s\n", indent, strconv.Quote(d))
	}
	if a.UpTo > 0 {
		fmt.Fprintf(&b, "%s  upTo: %d\n", indent, a.UpTo)
	}
	fmt.Fprintf(&b, "%s  by: %s\n%s  why: %s\n%s  expires: %s\n", indent, strconv.Quote(a.By), indent, strconv.Quote(a.Why), indent, strconv.Quote(a.Expires.UTC().Format(time.RFC3339)))
	return b.String()
}

// unfinished is the extension of a file that is not completely written yet.
const unfinished = ".new"

// replaceIn replaces a file below a root atomically. If a symlink has its name, replaceIn replaces the symlink and does not follow
// it.
func replaceIn(root *os.Root, name string, data []byte) error {
	name = filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	beside := name + unfinished
	if err := root.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := root.OpenFile(beside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Rename(beside, name)
	}
	if err != nil {
		_ = root.Remove(beside)
	}
	return err
}
