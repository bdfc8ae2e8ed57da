package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/install"
	"headgate.dev/headgate/reconcile/inventory"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/dynamic"
)

// This file finds the Sync objects that a verb names, as kubectl does: 'headgate get sync shop -n team'.

// objectFlags select Sync objects.
type objectFlags struct {
	in        clusterFlags
	namespace string
	all       bool
}

func (f *objectFlags) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "", "namespace of the Sync (default: that of the context)")
	f.in.addTo(cmd)
	cmd.ValidArgsFunction = f.complete
	checkFirst(cmd, f.check)
}

// addAllTo adds the flags of a verb that also lists Syncs.
func (f *objectFlags) addAllTo(cmd *cobra.Command) {
	f.addTo(cmd)
	cmd.Flags().BoolVarP(&f.all, "all-namespaces", "A", false, "Syncs of all namespaces")
}

func (f *objectFlags) check() error {
	if f.namespace != "" && len(validation.IsDNS1123Label(f.namespace)) > 0 {
		return usagef("--namespace: %q cannot be a namespace; use lower case letters, digits and '-', as in team-a", f.namespace)
	}
	return nil
}

// objects returns the client for Syncs in the namespace that the flags or the context select, and that namespace.
func (f *objectFlags) objects() (dynamic.ResourceInterface, string, error) {
	cfg, err := f.in.config()
	if err != nil {
		return nil, "", err
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, "", err
	}
	syncs := client.Resource(v1alpha1.GroupVersion.WithResource("syncs"))
	if f.all {
		return syncs, "", nil
	}
	namespace, err := f.namespaceOr()
	return syncs.Namespace(namespace), namespace, err
}

// namespaceOr returns the namespace of the flag, or that of the context.
func (f *objectFlags) namespaceOr() (string, error) {
	if f.namespace != "" {
		return f.namespace, nil
	}
	namespace, _, err := f.in.load().Namespace()
	return namespace, err
}

// kindWords are the words that may stand before a name, as in kubectl.
var kindWords = []string{"sync", "syncs", "hgs", "syncs.headgate.dev"}

// named returns the names of Syncs in arguments: NAME…, sync NAME…, or sync/NAME….
func named(args []string) ([]string, error) {
	if len(args) > 0 && slices.Contains(kindWords, args[0]) {
		args = args[1:]
	}
	names := make([]string, len(args))
	for i, arg := range args {
		kind, name, with := strings.Cut(arg, "/")
		switch {
		case !with:
			name = arg
		case !slices.Contains(kindWords, kind):
			return nil, usagef("%q does not name a Sync; write sync/%s, and the namespace with -n", arg, name)
		}
		if len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, usagef("%q cannot be the name of a Sync; use lower case letters, digits and '-', as in team-a", name)
		}
		names[i] = name
	}
	return names, nil
}

// oneName returns the only name in arguments.
func oneName(verb string, args []string) (string, error) {
	names, err := named(args)
	if err == nil && len(names) != 1 {
		err = usagef("%s takes one Sync: headgate %[1]s sync NAME", verb)
	}
	if err != nil {
		return "", err
	}
	return names[0], nil
}

// findSyncs returns the Syncs with these names, or all of them if there are no names.
func findSyncs(ctx context.Context, syncs dynamic.ResourceInterface, names []string) ([]unstructured.Unstructured, error) {
	if len(names) == 0 {
		list, err := syncs.List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, aboutSyncs(err)
		}
		return list.Items, nil
	}
	var all []unstructured.Unstructured
	var missing []error
	for _, name := range names {
		found, err := syncs.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			missing = append(missing, aboutSyncs(err))
			continue
		}
		all = append(all, *found)
	}
	return all, errors.Join(missing...)
}

// aboutSyncs explains the error of a cluster that does not serve Syncs.
func aboutSyncs(err error) error {
	var status apierrors.APIStatus
	if apierrors.IsNotFound(err) && errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name == "" {
		return errors.New("the cluster serves no Syncs; apply examples/controller/crds")
	}
	return err
}

// warnUnwatched warns of Syncs with the key of a shard that no controller runs. Without the right to list Deployments, it does not know.
func (t *terminal) warnUnwatched(ctx context.Context, in *clusterFlags, found []unstructured.Unstructured) {
	run, err := t.installer(in)
	if err != nil {
		return
	}
	syncs := make([]*unstructured.Unstructured, len(found))
	for i := range found {
		syncs[i] = &found[i]
	}
	if lines, err := run.Unwatched(ctx, syncs); err == nil && len(lines) > 0 {
		t.warn("%s", printable(strings.Join(lines, "; ")+": "+install.WatchThem))
	}
}

// warnUnwatchedObject is warnUnwatched for one object, if there is one.
func (t *terminal) warnUnwatchedObject(ctx context.Context, in *clusterFlags, of inventory.Sync) {
	one := &objectFlags{in: *in, namespace: of.Namespace}
	syncs, _, err := one.objects()
	if err != nil {
		return
	}
	if found, err := syncs.Get(ctx, of.Name, metav1.GetOptions{}); err == nil {
		t.warnUnwatched(ctx, in, []unstructured.Unstructured{*found})
	}
}

// typed returns a Sync as a value.
func typed(object *unstructured.Unstructured) (v1alpha1.Sync, error) {
	var s v1alpha1.Sync
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &s)
	return s, err
}

// patch merges fields into a Sync.
func patch(ctx context.Context, syncs dynamic.ResourceInterface, name string, fields map[string]any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	object, err := syncs.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{FieldManager: "headgate-cli"})
	if err != nil {
		return nil, aboutSyncs(err)
	}
	return object, nil
}

// annotate sets an annotation of a Sync.
func annotate(ctx context.Context, syncs dynamic.ResourceInterface, name, key, value string) (*unstructured.Unstructured, error) {
	return patch(ctx, syncs, name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

// setSuspended suspends or resumes the Syncs that arguments name. how holds the fields of the suspension; nil for none.
func (t *terminal) setSuspended(ctx context.Context, of *objectFlags, args []string, suspend bool, how map[string]any, done string) error {
	names, err := named(args)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return usagef("name a Sync: sync NAME")
	}
	syncs, _, err := of.objects()
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range names {
		if _, err := patch(ctx, syncs, name, map[string]any{"spec": map[string]any{"suspend": suspend, "suspension": how}}); err != nil {
			failed = append(failed, err)
			continue
		}
		if _, err := fmt.Fprintf(t.out, "sync.headgate.dev/%s %s\n", name, done); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// conditionOfSync returns a condition of a Sync; the zero value if it has none.
func conditionOfSync(s v1alpha1.Sync, kind string) metav1.Condition {
	i := slices.IndexFunc(s.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
	if i < 0 {
		return metav1.Condition{Type: kind}
	}
	return s.Status.Conditions[i]
}

// readiness returns the status of Ready, as a column shows it.
func readiness(s v1alpha1.Sync) string {
	return cmp.Or(string(conditionOfSync(s, v1alpha1.ConditionReady).Status), "Unknown")
}

// object selects the Sync object that the arguments name, if they name one. There may be no other argument.
func (f *syncFlags) object(cmd *cobra.Command, in *clusterFlags, args []string) error {
	rest, err := f.objectOf(cmd, in, args)
	if err == nil {
		err = takes(0, 0, "")(cmd, rest)
	}
	return err
}

// objectOf selects the Sync object that the arguments begin with, if they begin with one, and returns the other arguments.
func (f *syncFlags) objectOf(cmd *cobra.Command, in *clusterFlags, args []string) ([]string, error) {
	name, rest, is, err := ofObject(args)
	if err != nil || !is {
		return args, err
	}
	if cmd.Flags().Changed("name") {
		return nil, usagef("'sync %s' and --name both name a sync; leave out one of them", name)
	}
	f.name = name
	if !cmd.Flags().Changed("namespace") {
		f.namespace, _, err = in.load().Namespace()
	}
	return rest, err
}
