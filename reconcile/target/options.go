package target

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/facts"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/catalogue"
)

// Options lists all options. Each maps a value of the API to a flag and to the settings of passes. To add an option, add its field
// to the API, its row here, and the setting in the core. Help shows the flags in this order.
var Options = []Option{
	enumeration("spec.catalogue", "catalogue", "where Headgate looks for definitions; live includes those of the cluster",
		func(s *settings) *bool { return &s.Live },
		value(v1alpha1.CatalogueCommit, "commit", false),
		value(v1alpha1.CatalogueLive, "live", true)),
	enumeration("spec.managementPolicy", "management-policy", "what this sync may do; with observable it only reads what another tool applies, with rights to get, list and watch",
		func(s *settings) *bool { return &s.observes },
		value(v1alpha1.PolicyDefault, "default", false),
		value(v1alpha1.PolicyObservable, "observable", true)),
	enumeration("spec.adoption", "adoption", "objects that exist already; adopt also takes them from Flux, Argo CD and Helm, never from Crossplane",
		func(s *settings) *facts.Adoption { return &s.Terms.Adoption },
		value(v1alpha1.AdoptIfUnowned, "if-unowned", facts.AdoptUnowned),
		value(v1alpha1.AdoptRefuse, "refuse", facts.AdoptNone),
		value(v1alpha1.AdoptAll, "adopt", facts.AdoptAll)),
	enumeration("spec.adoptionLeftovers", "adoption-leftovers", "fields of a tool that applied the object before, which the commit does not set",
		func(s *settings) *bool { return &s.Terms.Clear },
		value(v1alpha1.LeftoversKeep, "keep", false),
		value(v1alpha1.LeftoversRemove, "remove", true)),
	enumeration("spec.conflicts", "conflicts", "fields that another field manager applies",
		func(s *settings) *bool { return &s.Terms.Take },
		value(v1alpha1.ConflictsRefuse, "refuse", false),
		value(v1alpha1.ConflictsTake, "take", true)),
	enumeration("spec.instances", "instances", "managed resources, XRs and claims that left the commit; pruning them deletes cloud resources",
		func(s *settings) *bool { return &s.Guarding.PruneInstances },
		value(v1alpha1.InstancesHold, "hold", false),
		value(v1alpha1.InstancesPrune, "prune", true)),
	enumeration("spec.deactivation", "deactivation", "active definitions that no policy names any more; when-unused deactivates unused ones",
		func(s *settings) *bool { return &s.Terms.Deactivate },
		value(v1alpha1.DeactivationNever, "never", false),
		value(v1alpha1.DeactivationWhenUnused, "when-unused", true)),
	enumeration("spec.drift", "drift", "changes of other writers to applied objects; report leaves them and exits with 3",
		func(s *settings) *bool { return &s.Guarding.ReportDrift },
		value(v1alpha1.DriftCorrect, "correct", false),
		value(v1alpha1.DriftReport, "report", true)),
	enumeration("spec.approvals.trailers", "approval-trailers", "has no effect any more: approvals in commit messages do not count; write them into .headgate/approvals.yaml",
		func(s *settings) *bool { return &s.Terms.Trailers },
		value(v1alpha1.TrailersNever, "never", false),
		value(v1alpha1.TrailersSigned, "signed", true),
		value(v1alpha1.TrailersAny, "any", true)),
	enumeration("spec.source.verify.mode", "verify", "what a key of --commit-key must have signed before a commit is applied: the commit (head), the annotated tag that --ref names, or both",
		func(s *settings) *signed { return &s.signed },
		value(v1alpha1.VerifyNever, "never", signed{}),
		value(v1alpha1.VerifyHead, "head", signed{commit: true}),
		value(v1alpha1.VerifyTag, "tag", signed{tag: true}),
		value(v1alpha1.VerifyTagAndHead, "tag-and-head", signed{commit: true, tag: true})),
	enumeration("spec.source.history", "history", "commits that may follow the last applied one; fast-forward holds the changes of a commit that does not descend from it",
		func(s *settings) *bool { return &s.Terms.FastForward },
		value(v1alpha1.HistoryAny, "any", false),
		value(v1alpha1.HistoryFastForward, "fast-forward", true)),
	number("spec.maxPrunes", "max-prunes", "maximum number of prunes in a pass; a pass with more holds all of them (default: a fifth of the owned objects, at least 3, at most 20)",
		func(s *v1alpha1.Spec) **int { return &s.MaxPrunes },
		func(s *settings) *int { return &s.Guarding.MaxPrunes }),
	number("spec.maxActivations", "max-activations", "maximum number of definitions that one policy or package may newly activate; definitions that a policy names in full do not count (default 100)",
		func(s *v1alpha1.Spec) **int { return &s.MaxActivations },
		func(s *settings) *int { return &s.Guarding.MaxActivations }),

	enumeration("spec.crdOwner", "crd-owner", "the tool that creates the CRDs of definitions; auto is crossplane if its API is served or the commit installs it",
		func(s *settings) *render.Owner { return &s.Options.Owner },
		value(v1alpha1.OwnerAuto, "auto", render.OwnerAuto),
		value(v1alpha1.OwnerHeadgate, "headgate", render.OwnerHeadgate),
		value(v1alpha1.OwnerCrossplane, "crossplane", render.OwnerCrossplane)).ofRendering(),
	enumeration("spec.conversion.strategy", "conversion", "what to do with conversion webhooks, whose service no package contains",
		func(s *settings) *render.ConversionStrategy { return &s.Options.Conversion.Strategy },
		value(v1alpha1.ConversionSafe, "safe", render.ConversionSafe),
		value(v1alpha1.ConversionInject, "inject", render.ConversionInject),
		value(v1alpha1.ConversionNone, "none", render.ConversionNone)).ofRendering(),
	enumeration("spec.others", "others", "what to do with objects that configure Flux or Argo CD, and with documents encrypted with SOPS",
		func(s *settings) *catalogue.Others { return &s.Options.Others },
		value(v1alpha1.OthersSkip, "skip", catalogue.SkipOthers),
		value(v1alpha1.OthersRefuse, "refuse", catalogue.RefuseOthers),
		value(v1alpha1.OthersApply, "apply", catalogue.ApplyOthers)).ofRendering(),
}

// forges maps the forges of the API to --forge and to package forge. A forge without a word uses the API of another one.
var forges = []row[v1alpha1.Forge, forge.Kind]{
	value(v1alpha1.ForgeGitHub, "github", forge.KindGitHub),
	value(v1alpha1.ForgeGitLab, "gitlab", forge.KindGitLab),
	value(v1alpha1.ForgeGitea, "gitea", forge.KindGitea),
	value(v1alpha1.ForgeForgejo, "", forge.KindGitea),
	value(v1alpha1.ForgeBitbucket, "bitbucket", forge.KindBitbucket),
	value(v1alpha1.ForgeBitbucketDataCenter, "bitbucket-data-center", forge.KindBitbucketDataCenter),
	value(v1alpha1.ForgeAzureDevOps, "azure-devops", forge.KindAzureDevOps),
}

// settings are the result of the options: a Reconciler without a source and a cluster.
type settings struct {
	reconcile.Reconciler

	observes bool // passes only observe; another tool applies
	signed   signed
}

// signed is what must be signed.
type signed struct{ commit, tag bool }

// An Option is a setting of a Sync that is also a flag.
type Option struct {
	Field     string   // field of the Sync, such as "spec.adoption"
	Flag      string   // flag, such as "adoption"
	Usage     string   // help text of the flag
	Words     []string // values of the flag, the default first; nil if it is a number
	Rendering bool     // rendering depends on it; otherwise, only passes do

	rows  []row[string, any] // the meanings of Words
	set   func(spec *v1alpha1.Spec, word string) error
	word  func(spec *v1alpha1.Spec) string
	apply func(spec *v1alpha1.Spec, to *settings)
}

// A row is one value of an option: in the API, as a flag, and in the core.
type row[A ~string, C any] struct {
	api  A
	word string
	core C
}

func value[A ~string, C any](api A, word string, core C) row[A, C] { return row[A, C]{api, word, core} }

// enumeration returns an option for an enumeration of the API, which sets a field of the core.
func enumeration[A ~string, C any](field, flag, usage string, core func(*settings) *C, rows ...row[A, C]) Option {
	o := Option{Field: field, Flag: flag, Usage: usage}
	for _, r := range rows {
		o.Words = append(o.Words, r.word)
		o.rows = append(o.rows, row[string, any]{string(r.api), r.word, r.core})
	}
	o.set = func(spec *v1alpha1.Spec, word string) error {
		for _, r := range rows {
			if strings.EqualFold(r.word, word) || strings.EqualFold(string(r.api), word) { // also accepts the API's spelling
				enumerationOf(spec, field).Set(string(r.api))
				return nil
			}
		}
		return fmt.Errorf("it is one of %s", strings.Join(o.Words, ", "))
	}
	o.word = func(spec *v1alpha1.Spec) string {
		api := enumerationOf(spec, field).Value()
		for _, r := range rows {
			if string(r.api) == api {
				return r.word
			}
		}
		return o.Words[0]
	}
	o.apply = func(spec *v1alpha1.Spec, to *settings) {
		api := enumerationOf(spec, field).Value()
		for _, r := range rows {
			if string(r.api) == api {
				*core(to) = r.core
			}
		}
	}
	return o
}

// enumerationOf returns the enumeration in a field; the zero value if there is none.
func enumerationOf(spec *v1alpha1.Spec, field string) v1alpha1.Enumeration {
	for _, e := range spec.Enumerations() {
		if e.Field == field {
			return e
		}
	}
	return v1alpha1.Enumeration{}
}

// number returns an option for a whole number, whose range is that of the API. If it is left out, the core has a default.
func number(field, flag, usage string, api func(*v1alpha1.Spec) **int, core func(*settings) *int) Option {
	return Option{
		Field: field, Flag: flag, Usage: usage,
		set: func(spec *v1alpha1.Spec, word string) error {
			n, err := strconv.Atoi(word)
			if err != nil {
				return errors.New("use a whole number")
			}
			if err := numberOf(spec, field).Check(int64(n)); err != nil {
				return fmt.Errorf("%w; leave it out for the default", err)
			}
			*api(spec) = &n
			return nil
		},
		word:  func(spec *v1alpha1.Spec) string { return strconv.Itoa(or0(*api(spec))) },
		apply: func(spec *v1alpha1.Spec, to *settings) { *core(to) = or0(*api(spec)) },
	}
}

// numberOf returns the number in a field; one that accepts only 0 if there is none.
func numberOf(spec *v1alpha1.Spec, field string) v1alpha1.Number {
	for _, n := range spec.Numbers() {
		if n.Field == field {
			return n
		}
	}
	return v1alpha1.Number{}
}

func (o Option) ofRendering() Option {
	o.Rendering = true
	return o
}

// Set sets the option in a Spec from a value of its flag.
func (o Option) Set(spec *v1alpha1.Spec, word string) error { return o.set(spec, word) }

// Word returns the value of the flag for a Spec.
func (o Option) Word(spec *v1alpha1.Spec) string { return o.word(spec) }

// OptionOf returns the option of a flag. The flag must exist.
func OptionOf(flag string) Option {
	return Options[slices.IndexFunc(Options, func(o Option) bool { return o.Flag == flag })]
}

// WithoutEffect returns the flags of the options that a Spec sets although they have no effect on a Sync that only
// observes.
func WithoutEffect(spec *v1alpha1.Spec) []string {
	var flags []string
	for _, o := range Options {
		n, e := numberOf(spec, o.Field), enumerationOf(spec, o.Field)
		if n.Writes && n.Set || e.Writes && o.word(spec) != o.Words[0] {
			flags = append(flags, "--"+o.Flag)
		}
	}
	return flags
}

// Forges returns the values of --forge.
func Forges() []string {
	var words []string
	for _, r := range forges {
		if r.word != "" {
			words = append(words, r.word)
		}
	}
	return words
}

// kindOf returns the kind of a forge of the API; "" for "".
func kindOf(f v1alpha1.Forge) forge.Kind {
	for _, r := range forges {
		if r.api == f {
			return r.core
		}
	}
	return ""
}

// ForgeKind returns the kind of forge for a value of --forge; "" for unknown values.
func ForgeKind(word string) forge.Kind {
	for _, r := range forges {
		if r.word == word && word != "" {
			return r.core
		}
	}
	return ""
}

func or0(n *int) int {
	if n == nil {
		return 0 // the default
	}
	return *n
}
