package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/activation"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func newConvert(t *terminal) *cobra.Command {
	var c convertFlags
	format := oneOf("yaml", "json")
	cmd := &cobra.Command{
		Use:   "convert SOURCE... [flags]",
		Short: "Convert CRDs into ManagedResourceDefinitions",
		Long: `Convert prints the ManagedResourceDefinitions that Crossplane's package manager makes of
CRDs. SOURCE is a provider package (a directory with a crossplane.yaml, an .xpkg file, or
its package.yaml), another directory, a file, or - for standard input. Convert leaves out
the kinds that stay CRDs (ProviderConfig, ClusterProviderConfig, ProviderConfigUsage,
ClusterProviderConfigUsage) and everything that is not a definition. It prints existing
ManagedResourceDefinitions unchanged.

A definition of a provider without the capability safe-start has 'state: Active', as with
Crossplane. A definition without a package has no state, which means Inactive.

CRDs do not contain the keys of connection secrets. Convert reads these from objects of kind
ConnectionDetails in SOURCE, and in a file with --connection-details. A commit can hold such
objects next to its policies; Headgate never applies them:

  apiVersion: headgate.dev/v1alpha1
  kind: ConnectionDetails
  metadata: {name: databases}
  spec:
    definitions:
    - name: instances.rds.aws.m.upbound.io
      connectionDetails:
      - {name: endpoint, description: host and port of the instance}

Exit codes: 0 converted, 1 an error or nothing to convert, 2 wrong usage.`,
		Example: `  headgate convert ./provider-aws.xpkg > definitions.yaml
  kustomize build ./crds | headgate convert -
  headgate convert crds/buckets.yaml crds/queues.yaml | kubectl apply --server-side -f -
  headgate convert ./provider-aws --to ./definitions --connection-details details.yaml`,
		Args: takes(1, 1<<16, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			defer t.progress.Stop()
			found, err := c.read(cmd.Context(), t.in, args)
			if err != nil {
				return err
			}
			if len(found.definitions) == 0 {
				return fmt.Errorf("there is no CRD to convert in %s%s", strings.Join(args, " or "), found.rest())
			}
			t.progress.Phase("convert", 0, 0)
			how := yamlStream
			if format.value == "json" {
				how = jsonList
			}
			if c.to != "" {
				err = found.files(c.to, how, format.value)
			} else {
				err = how.write(t.out, len(found.definitions), found.definition)
			}
			if err != nil {
				return err
			}
			t.progress.Stop()
			t.findings(found.findings)
			_, err = fmt.Fprintf(t.err, "Summary: %s%s\n", manifest.Count(len(found.definitions), "definition"), found.rest())
			return err
		},
	}
	cmd.Flags().StringVar(&c.details, "connection-details", "", "`file` of objects of kind ConnectionDetails")
	cmd.Flags().StringVar(&c.to, "to", "", "write every definition to a file of its name in this `directory`, and nothing to standard output")
	cmd.Flags().StringVar(&c.release, "crossplane-version", "", "convert as this `version` of Crossplane does, such as v2.3.1 (default: the newest known)")
	format.addTo(cmd, "output", "o", "output format")
	return cmd
}

// convertFlags holds the flags of convert.
type convertFlags struct {
	details, to, release string
}

// converted holds the definitions of all sources.
type converted struct {
	definitions []*catalogue.Definition
	findings    []manifest.Finding
	crds, other int // CRDs that stay CRDs, and other objects that are left out
}

// read reads the sources, without decoding the bodies of definitions.
func (f *convertFlags) read(ctx context.Context, stdin io.Reader, sources []string) (converted, error) {
	var all converted
	var details []catalogue.Details
	if f.details != "" {
		in, err := git.Directory{Root: filepath.Dir(f.details)}.Fetch(ctx, "")
		if err != nil {
			return all, err
		}
		if details, err = catalogue.ReadDetails(in.Files, filepath.Base(f.details), manifest.Limits{}); err != nil {
			return all, err
		}
	}
	first := map[string]*catalogue.Definition{}
	for _, source := range sources {
		c, err := f.catalogue(ctx, stdin, source)
		if err != nil {
			return all, err
		}
		for _, d := range c.Definitions {
			if other := first[d.Name]; other != nil {
				return all, fmt.Errorf("%s: definition %s of %s is in another source already, at %s", d.Origin(), d.Name, source, other.Origin())
			}
			first[d.Name] = d
		}
		all.add(c)
		details = append(details, c.Details...)
	}
	unknown, err := catalogue.Describe(all.definitions, details)
	all.findings = append(all.findings, unknown...)
	return all, err
}

// catalogue reads one source. It also includes CRDs without a package.
func (f *convertFlags) catalogue(ctx context.Context, stdin io.Reader, source string) (_ catalogue.Catalogue, err error) {
	how := catalogue.Options{CrossplaneVersion: f.release}
	if source == "-" {
		return catalogue.ReadStream("stdin", stdin, how)
	}
	info, err := os.Stat(source)
	if err != nil {
		return catalogue.Catalogue{}, err
	}
	image := filepath.Ext(source) == ".xpkg"
	if !info.IsDir() && !image {
		file, err := os.Open(source)
		if err != nil {
			return catalogue.Catalogue{}, err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		return catalogue.ReadStream(filepath.ToSlash(source), file, how)
	}
	root, below := source, "."
	if image {
		root, below = filepath.Dir(source), filepath.Base(source)
	}
	in, err := git.Directory{Root: root}.Fetch(ctx, "")
	if err != nil {
		return catalogue.Catalogue{}, err
	}
	if _, err := fs.Lstat(in.Files, "crossplane.yaml"); err != nil && !image {
		how.Packages = []catalogue.Declared{{Path: ".", Name: source, SafeStart: true}}
	}
	docs, err := catalogue.Open(in.Files, below, how)
	if err != nil {
		return catalogue.Catalogue{}, err
	}
	return packages.Of(docs, false).Catalogue() // a malformed lock is an error, as in every verb
}

func (c *converted) add(from catalogue.Catalogue) {
	c.definitions = append(c.definitions, from.Definitions...)
	for _, o := range from.Objects {
		if o.ID().IsCRD() {
			c.crds++
		} else {
			c.other++
		}
	}
	for why, n := range from.Skipped {
		if why != catalogue.Metadata && why != catalogue.Described {
			c.other += n
		}
	}
	for _, f := range from.Findings {
		if f.Rule != catalogue.RuleNotInstalled { // objects that are left out are counted instead
			c.findings = append(c.findings, f)
		}
	}
}

// definition returns the ith definition as Crossplane makes it.
func (c converted) definition(i int) (*unstructured.Unstructured, error) {
	return render.DecidedDefinition{Decision: activation.Decision{Definition: c.definitions[i]}}.Declared()
}

// files writes each definition to its own file.
func (c converted) files(directory string, how form, extension string) (err error) {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(directory) // names come from the sources; a root keeps them inside the directory
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return inOrder(len(c.definitions), func(i int) (string, error) {
		u, err := c.definition(i)
		if err != nil {
			return "", err
		}
		return how.encoded(u)
	}, func(i int, text string) error {
		return root.WriteFile(c.definitions[i].Name+"."+extension, []byte(text), 0o644)
	})
}

// rest describes the objects that are not definitions.
func (c converted) rest() string {
	text := ""
	if c.crds > 0 {
		text += fmt.Sprintf(" · %s left as they are", manifest.Count(c.crds, "CRD"))
	}
	if c.other > 0 {
		text += fmt.Sprintf(" · %d others left out", c.other)
	}
	return text
}
