package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"headgate.dev/headgate/examples"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/install"
	"headgate.dev/headgate/reconcile/words"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// The image of releases.
const (
	imageRegistry   = "ghcr.io"
	imageRepository = "headgate-dev/headgate"
)

// installFlags holds the flags of install.
type installFlags struct {
	in       clusterFlags
	o        install.Options
	profile  choice
	registry string
	file     string
	export   bool
	dryRun   bool
	noWait   bool
	timeout  time.Duration
}

func newInstall(t *terminal) *cobra.Command {
	f := &installFlags{profile: oneOf(install.Profiles...)}
	cmd := &cobra.Command{
		Use:   "install [flags]",
		Short: "Install the controller into a cluster",
		Long: `Install applies the objects of an installation with server-side apply, and waits until its Pods
are ready: a namespace, the CRD of Syncs, two replicas of 'headgate controller', their rights, the
admission policies, Services, a NetworkPolicy and a PodDisruptionBudget. With --export it prints
them instead, for kubectl apply --server-side -f -, or for a repository. The Helm chart of
examples/chart and the kustomize base of examples/controller have the same objects.

The profile decides what the installation may do. Install prints what someone with a stolen token
of it could do.

- tenant: the controller acts as the service account that each Sync names, if the namespace lets
  it (examples/controller/tenant.yaml). With --watch-namespace and --service-account, it runs the
  Syncs of one namespace, and may act as that account
- observe: runs Syncs with managementPolicy Observable in its own namespace, as an account that
  gets, lists and watches. It reads no Secrets except --secret
- crossplane: writes definitions, policies, packages, XRDs and Compositions for the Syncs of its
  own namespace that --sync names
- crds: writes CRDs for these Syncs, and no RBAC or Secrets
- preview: previews the pull requests of the Syncs in --file, with no rights in the cluster

With --shard, several controllers share the Syncs: one runs those without the label
sharding.fluxcd.io/key, and one those of each shard. Each has a Deployment, a PodDisruptionBudget, a
NetworkPolicy, Services and a lease of its own. Name all shards at each installation: the controller of
a shard that is not named any more is deleted, and without --shard, one controller runs all Syncs again.
Install reports how many Syncs have a key that no Deployment watches.

Install can be repeated, and over an older version. It deletes what another profile left. It
stops before it writes if another controller runs the same Syncs, if the objects belong to a
release of Helm, or if a Sync uses a field that this version does not know. A newer CRD stays as it is.

Exit codes: 0 installed or printed, 1 an error, 2 wrong usage.`,
		Example: `  headgate install
  headgate install --export | kubectl apply --server-side -f -
  headgate install --profile crossplane --sync platform --image registry.example.org/headgate:v1.0.0
  headgate install -n headgate-team-a --watch-namespace team-a --service-account deployer
  headgate install --shard team-a --shard team-b`,
		Args: takes(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			objects, err := f.objects()
			if err != nil {
				return err
			}
			reach, err := install.Reach(objects)
			if err != nil {
				return err
			}
			if f.export {
				if err := t.exported(objects); err != nil {
					return err
				}
				return t.tell(reach)
			}
			if err := t.tell(reach); err != nil {
				return err
			}
			return t.install(cmd.Context(), f, objects)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.export, "export", false, "print the objects, and ask no cluster")
	f.profile.addTo(cmd, "profile", "", "what the installation may do")
	flags.StringVarP(&f.o.Namespace, "namespace", "n", install.DefaultNamespace, "namespace of the installation")
	flags.StringVarP(&f.file, "file", "f", "", "`file` of Syncs for the profile preview")
	flags.StringArrayVar(&f.o.Syncs, "sync", []string{"platform"}, "`name` of a Sync of the profiles crossplane and crds; may be given several times")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only list the objects")
	flags.StringVar(&f.o.Watch, "watch-namespace", "", "run only the Syncs of this `namespace` (default: all)")
	flags.StringArrayVar(&f.o.Shards, "shard", nil, "`name` of a shard: a controller of its own runs the Syncs with the label sharding.fluxcd.io/key=NAME; may be given several times")
	flags.StringVar(&f.o.Account, "service-account", "", "`name` of the service account in --watch-namespace as which the controller may act")
	flags.StringArrayVar(&f.o.Secrets, "secret", nil, "`name` of a Secret that Syncs of the installation's namespace name; may be given several times")
	flags.StringArrayVar(&f.o.ProviderGroups, "provider-group", nil, "`group` whose ClusterProviderConfigs commits hold, such as aws.m.upbound.io; may be given several times")
	flags.StringArrayVar(&f.o.CountGroups, "count-group", nil, "`group` whose objects may be listed, to count what a deletion would reach; may be given several times")
	flags.StringVar(&f.o.Image, "image", "", "`image` with its tag or digest (default: that of this release)")
	flags.StringVar(&f.registry, "registry", imageRegistry, "`host` of the registry of the default image, with a path if needed")
	flags.StringArrayVar(&f.o.PullSecrets, "pull-secret", nil, "`name` of a Secret for the registry of the image; may be given several times")
	flags.StringVar(&f.o.CA, "ca-config-map", "", "`name` of a ConfigMap whose values are certificates of further authorities")
	flags.Var(ports{&f.o.EgressPorts}, "egress-port", "TCP `port` of a Git server, registry or forge, besides 22, 443 and 6443; may be given several times")
	flags.StringVar(&f.o.CacheSize, "cache-size", install.DefaultCacheSize, "`amount` that a Pod keeps of clones and packages at most, in whole gibibytes; its volume has 1Gi more, and its limit of ephemeral storage 3Gi")
	addLapse(cmd, &f.timeout, "timeout", 5*time.Minute, "how long to wait until the Pods are ready")
	flags.BoolVar(&f.noWait, "no-wait", false, "do not wait until the Pods are ready")
	f.in.addTo(cmd)
	return cmd
}

// objects returns the objects that the flags ask for.
func (f *installFlags) objects() ([]*unstructured.Unstructured, error) {
	o := f.o
	o.Profile = install.Profile(f.profile.value)
	if o.Image == "" {
		o.Image = strings.TrimSuffix(f.registry, "/") + "/" + imageRepository + ":" + imageTag()
	}
	if f.file != "" {
		if o.Profile != install.Preview {
			return nil, usagef("--file is for the profile %s; create the Syncs of the others as objects", install.Preview)
		}
		if _, err := readSyncs([]string{f.file}); err != nil {
			return nil, err
		}
		text, err := os.ReadFile(f.file)
		if err != nil {
			return nil, err
		}
		o.SyncFile = string(text)
	}
	if err := o.Check(); err != nil {
		return nil, usagef("%s", err)
	}
	return install.Objects(examples.Manifests, o)
}

// imageTag returns the tag of the image of this version.
func imageTag() string {
	version := thisBuild().Version
	if !strings.HasPrefix(version, "v") || strings.ContainsAny(version, "()+ ") {
		return "latest"
	}
	return version
}

// exported writes objects as one stream.
func (t *terminal) exported(objects []*unstructured.Unstructured) error {
	t.progress.Stop()
	for _, u := range objects {
		text, err := yaml.Marshal(u.Object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(t.out, "---\n%s", text); err != nil {
			return err
		}
	}
	return nil
}

// tell writes lines to standard error.
func (t *terminal) tell(lines []string) error {
	t.progress.Stop()
	for _, line := range lines {
		if _, err := fmt.Fprintln(t.err, printable(line)); err != nil {
			return err
		}
	}
	return nil
}

// installer returns a run that reports each object.
func (t *terminal) installer(in *clusterFlags) (install.Run, error) {
	config, err := in.config()
	if err != nil {
		return install.Run{}, err
	}
	to, err := cluster.NewInstaller(config, words.Of)
	return install.Run{
		Cluster: to,
		Say:     func(done, object string) { fmt.Fprintln(t.out, printable(done+" "+object)) },
		Note:    func(format string, a ...any) { t.warn(format, a...) },
	}, err
}

func (t *terminal) install(ctx context.Context, f *installFlags, objects []*unstructured.Unstructured) error {
	run, err := t.installer(&f.in)
	if err != nil {
		return err
	}
	run.Timeout, run.NoWait, run.DryRun = f.timeout, f.noWait, f.dryRun
	if err := run.Install(ctx, f.o.Namespace, objects); err != nil {
		return err
	}
	if f.dryRun {
		return nil
	}
	return t.tell(f.next())
}

// next returns what to do after an installation.
func (f *installFlags) next() []string {
	namespace := f.o.Namespace
	switch install.Profile(f.profile.value) {
	case install.Preview:
		return []string{
			fmt.Sprintf("Next: kubectl -n %s create secret generic headgate-credentials --from-literal=HEADGATE_FORGE_TOKEN=...", namespace),
			fmt.Sprintf("Then open a pull request, and read: kubectl -n %s logs deployment/%s", namespace, install.PreviewDeployment),
		}
	case install.Tenant:
		namespace = "team-a"
		if f.o.Watch != "" {
			namespace = f.o.Watch
		}
		return []string{
			"Next: write the namespace and the repository into examples/controller/tenant.yaml, and kubectl apply --server-side -f tenant.yaml",
			fmt.Sprintf("Then read the result: headgate get syncs -n %s", namespace),
		}
	}
	return []string{
		fmt.Sprintf("Next: 'headgate init' in your repository writes sync.yaml; create it as an object: kubectl -n %s apply --server-side -f sync.yaml", namespace),
		fmt.Sprintf("Then read the result: headgate get syncs -n %s", namespace),
	}
}
