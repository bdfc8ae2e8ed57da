package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/api"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/approval"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/target"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

func newApprove(t *terminal) *cobra.Command {
	var (
		file  string
		name  string
		write approvalToWrite
		of    objectFlags
	)
	cmd := &cobra.Command{
		Use:   "approve {-f FILE [--sync NAME] | sync NAME [-n NAMESPACE] | --write --by WHO --why TEXT} DIGEST [up to NUMBER]",
		Short: "Approve what a guard holds",
		Long: `Approve writes the digest of held steps into a file of Syncs, as the annotation
headgate.dev/approve of one Sync: 'DIGEST up to NUMBER at TIME'. Another time is another
approval.
It changes nothing else in the file. A running 'headgate run -f FILE' makes a pass
at once.

Copy the digest from 'headgate diff' or 'headgate sync', which print it above the steps
that it approves, from 'headgate status', from the line "held" in the log of 'headgate run',
or from the comment on a pull request. Copy 'up to NUMBER', too: it is how many definitions
the steps activate and how many custom resources they break. Without it, the approval covers
none of these.

An approval covers exactly the steps of the report: with one step more or less it has no
effect, and with more than NUMBER the steps are held again. It counts once, for one commit, and may stay in the file. You can approve what these
guards hold: empty, external, flood, history, many, package lost, rebuilt, schema,
unfinished.

With 'sync NAME', Headgate annotates a Sync object in a cluster. The annotation names you as the API
server does: 'DIGEST up to NUMBER by USER at TIME'. Each approval replaces the one before it.

With --write, Headgate adds the approval to .headgate/approvals.yaml in a checkout: commit it to
the branch that clusters apply, and it reaches all of them. Digests of single steps, which -o json
shows and --report reads, cover those steps in every cluster that holds them, also in later commits,
until they are carried out or the approval expires. Protect the file with CODEOWNERS.

Without a file of Syncs, give the digest to the pass itself: headgate sync --approve DIGEST.
The author of a change cannot approve it.`,
		Example: `  headgate approve -f sync.yaml 3f786850e387550fdab836ed7e6dc881
  headgate approve -f syncs.yaml --sync prod 3f786850e387550fdab836ed7e6dc881 up to 12
  headgate approve sync shop -n team 3f786850e387550fdab836ed7e6dc881 up to 12
  headgate diff -o json | headgate approve --write --report - --by alice --why "the buckets are empty"`,
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, flag := range []string{"by", "why", "expires", "report", "repo"} {
				if !write.on && cmd.Flags().Changed(flag) {
					return usagef("--%s has no effect without --write", flag)
				}
			}
			object, rest, is, err := ofObject(args)
			switch {
			case err != nil:
				return err
			case is && (file != "" || name != "" || write.on):
				return usagef("'sync %s' names an object in a cluster: leave out -f, --sync and --write", object)
			case is:
				return t.approveObject(cmd.Context(), &of, object, strings.Join(rest, " "))
			}
			if write.on {
				if file != "" || name != "" {
					return usagef("--write writes into a checkout, and -f and --sync into a file of Syncs; give one of them")
				}
				return t.writeApproval(write, args)
			}
			given, err := digests(strings.Join(args, " "))
			switch {
			case err != nil:
				return usagef("%w", err)
			case len(given) != 1:
				return usagef("give one digest, not %d", len(given))
			case file == "":
				return usagef("name the file of Syncs: -f FILE; without one, use 'headgate sync --approve DIGEST'")
			}
			line := approval.Line(given[0].Digests[0], given[0].UpTo)
			sync, err := approveIn(file, name, line)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(t.out, "%s: the sync %s approves %s\n", file, printable(sync), line)
			return err
		},
	}
	cmd.Flags().StringVarP(&file, "file", "f", "", "`file` of Syncs, which is changed")
	cmd.Flags().StringVar(&name, "sync", "", "`name` of the sync, as name or namespace/name, where the file holds several")
	values(cmd, "sync", syncsInFile)
	write.addTo(cmd)
	of.addTo(cmd)
	return cmd
}

// approveIn writes an approval into a file of Syncs, and returns the name of the Sync.
func approveIn(file, name, line string) (string, error) {
	before, err := readFile("file", file)
	if err != nil {
		return "", err
	}
	syncs, err := api.Decode(before)
	if err != nil {
		return "", errors.Join(eachWith(file, err)...)
	}
	chosen, err := choose(file, name, "--sync", syncs)
	if err != nil {
		return "", err
	}
	of := syncs[chosen].Namespace + "/" + syncs[chosen].Name
	value := line + " at " + time.Now().UTC().Format(time.RFC3339) // another approval than one of the same digest before
	after, err := annotated(before, chosen, v1alpha1.ApproveAnnotation, value)
	if err == nil {
		err = onlyApproves(after, syncs, chosen, value)
	}
	if err != nil {
		return "", fmt.Errorf("%s: cannot be edited here (%w); write into it, below metadata of %s:\n  annotations:\n    %s: %q",
			file, err, of, v1alpha1.ApproveAnnotation, value)
	}
	return of, replace(file, after)
}

// onlyApproves returns an error unless an edit set the approval of the chosen Sync and changed nothing else.
func onlyApproves(edited []byte, before []v1alpha1.Sync, chosen int, value string) error {
	after, err := api.Decode(edited)
	if err != nil {
		return err
	}
	if len(after) != len(before) || after[chosen].Annotations[v1alpha1.ApproveAnnotation] != value {
		return fmt.Errorf("the edit would not set the annotation")
	}
	for i := range after {
		for _, s := range []*v1alpha1.Sync{&before[i], &after[i]} {
			delete(s.Annotations, v1alpha1.ApproveAnnotation)
			if len(s.Annotations) == 0 {
				s.Annotations = nil
			}
		}
		if !reflect.DeepEqual(before[i], after[i]) {
			return fmt.Errorf("the edit would change more")
		}
	}
	return nil
}

// annotated returns the file with an annotation on the nth non-empty document. All other bytes stay unchanged.
func annotated(file []byte, nth int, key, value string) ([]byte, error) {
	decoder := yaml.NewDecoder(strings.NewReader(string(file)))
	for {
		var document yaml.Node
		if err := decoder.Decode(&document); err != nil {
			return nil, err
		}
		if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
			continue
		}
		if nth == 0 {
			return annotatedNode(strings.SplitAfter(string(file), "\n"), document.Content[0], key, value)
		}
		nth--
	}
}

func annotatedNode(lines []string, sync *yaml.Node, key, value string) ([]byte, error) {
	_, metadata := entryOf(sync, "metadata")
	if metadata == nil || metadata.Kind != yaml.MappingNode || len(metadata.Content) == 0 {
		return nil, fmt.Errorf("metadata is not a mapping")
	}
	at, annotations := entryOf(metadata, "annotations")
	if annotations != nil && (annotations.Kind != yaml.MappingNode || len(annotations.Content) == 0) {
		return nil, fmt.Errorf("annotations at line %d are not a mapping", at.Line)
	}
	insert := func(line, column int, text string) {
		runes := []rune(lines[line-1])
		lines[line-1] = string(runes[:column-1]) + text + string(runes[column-1:])
	}
	indent := func(n *yaml.Node) string { return strings.Repeat(" ", n.Column-1) }
	pair := fmt.Sprintf("%s: %q", key, value) // a digest may look like a number
	flow := fmt.Sprintf("%q: %q, ", key, value)
	switch {
	case annotations == nil && metadata.Style&yaml.FlowStyle != 0:
		insert(metadata.Line, metadata.Column+1, fmt.Sprintf("\"annotations\": {%s}, ", strings.TrimSuffix(flow, ", ")))
	case annotations == nil:
		first := metadata.Content[0]
		insert(first.Line, 1, indent(first)+"annotations:\n"+indent(first)+"  "+pair+"\n")
	default:
		_, old := entryOf(annotations, key)
		switch {
		case old != nil && old.Kind == yaml.ScalarNode && old.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0:
			runes := []rune(lines[old.Line-1])
			rest := string(runes[old.Column-1:])
			for _, written := range []string{`"` + old.Value + `"`, "'" + old.Value + "'", old.Value} {
				if after, is := strings.CutPrefix(rest, written); is {
					lines[old.Line-1] = string(runes[:old.Column-1]) + fmt.Sprintf("%q", value) + after
					return []byte(strings.Join(lines, "")), nil
				}
			}
			return nil, fmt.Errorf("the annotation at line %d has a form that Headgate cannot edit", old.Line)
		case old != nil:
			return nil, fmt.Errorf("the annotation at line %d has a form that Headgate cannot edit", old.Line)
		case annotations.Style&yaml.FlowStyle != 0:
			insert(annotations.Line, annotations.Column+1, flow)
		default:
			first := annotations.Content[0]
			insert(first.Line, 1, indent(first)+pair+"\n")
		}
	}
	return []byte(strings.Join(lines, "")), nil
}

// entryOf returns the key and value nodes of an entry of a mapping, or nil.
func entryOf(mapping *yaml.Node, key string) (k, v *yaml.Node) {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// replace replaces the content of a file atomically: readers see the old content or the new one.
func replace(file string, data []byte) error {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	beside, err := os.CreateTemp(filepath.Dir(file), ".headgate-*")
	if err != nil {
		return err
	}
	defer os.Remove(beside.Name()) // a no-op after the rename
	_, err = beside.Write(data)
	for _, then := range []func() error{
		func() error { return beside.Chmod(info.Mode().Perm()) },
		beside.Sync,
		beside.Close,
		func() error { return os.Rename(beside.Name(), file) },
	} {
		if err != nil {
			_ = beside.Close()
			return err
		}
		err = then()
	}
	return err
}

// digests returns the approvals in a text: digests of a report, each with the amount that follows it.
func digests(text string) ([]approval.Approval, error) {
	var all []approval.Approval
	for _, given := range v1alpha1.ApprovalsIn(text) {
		upTo, err := given.Number()
		switch {
		case !v1alpha1.IsDigest(given.Digest):
			return nil, fmt.Errorf("%q is not a digest from a report, which has 32 hexadecimal digits", given.Digest)
		case given.By != "" || given.At != "":
			return nil, fmt.Errorf("write DIGEST, or 'DIGEST up to NUMBER', without words after it")
		case err != nil:
			return nil, err
		}
		all = append(all, approval.Approval{Digests: []string{given.Digest}, UpTo: upTo})
	}
	return all, nil
}

// approveFlag holds the approvals of --approve.
type approveFlag []approval.Approval

func (f *approveFlag) addTo(cmd *cobra.Command) {
	cmd.Flags().Var(f, "approve", "let through exactly the held steps that a report shows with this `digest`: DIGEST, or 'DIGEST up to NUMBER' as the report prints it; may be given several times")
}

func (f *approveFlag) String() string {
	lines := make([]string, len(*f))
	for i, a := range *f {
		lines[i] = approval.Line(a.Digests[0], a.UpTo)
	}
	return strings.Join(lines, ",")
}
func (f *approveFlag) Type() string { return "digest" }
func (f *approveFlag) Set(text string) error {
	given, err := digests(text)
	*f = append(*f, given...)
	return err
}

// given returns the approvals of a command that makes one pass and reads no Sync.
func (f *approveFlag) given() approval.Given {
	return approval.Given{inventory.OnCommand: *f}
}

// standing returns a function that reads the current approvals from the files of a Sync and from the command line. If the files
// cannot be read or no longer contain the Sync, its approvals are unknown: Headgate counts no approval and forgets none.
func standing(file *syncFiles, s v1alpha1.Sync, once bool, flag approveFlag) func() approval.Given {
	flags := inventory.OnRun
	if once {
		flags = inventory.OnCommand
	}
	return func() approval.Given {
		given := approval.Given{flags: flag}
		if now, ok := file.now()[inventory.Sync{Namespace: s.Namespace, Name: s.Name}]; ok {
			given[inventory.OnSync] = target.OnSync(now)
		}
		return given
	}
}

// syncFiles caches files of Syncs, because every pass of every sync reads its file.
type syncFiles struct {
	names []string

	mu      sync.Mutex
	content [][]byte // of the last decoding
	syncs   map[inventory.Sync]v1alpha1.Sync
}

// now returns the current Syncs; nil if a file cannot be read, or has a mistake. It decodes the files only if they have changed: every
// one of a thousand syncs asks before each of its plans.
func (f *syncFiles) now() map[inventory.Sync]v1alpha1.Sync {
	f.mu.Lock()
	defer f.mu.Unlock()
	content := make([][]byte, len(f.names))
	for i, name := range f.names {
		var err error
		if content[i], err = readFile("file", name); err != nil {
			return nil
		}
	}
	if f.content != nil && slices.EqualFunc(content, f.content, bytes.Equal) {
		return f.syncs
	}
	f.content, f.syncs = content, nil
	all, err := readSyncs(f.names)
	if err != nil {
		return nil
	}
	f.syncs = make(map[inventory.Sync]v1alpha1.Sync, len(all))
	for _, s := range all {
		f.syncs[inventory.Sync{Namespace: s.Namespace, Name: s.Name}] = s
	}
	return f.syncs
}
