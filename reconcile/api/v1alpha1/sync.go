// Package v1alpha1 holds the Sync: one repository and path, into one cluster. It is read
// from a file now and from a cluster later, and means the same in both. What becomes of it
// is up to package target.
package v1alpha1

import (
	"regexp"
	"strings"
	"time"
	"unicode"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the kind of a Sync, GroupVersion where it lives.
const Kind = "Sync"

// GroupVersion is the version that this package holds.
var GroupVersion = schema.GroupVersion{Group: "headgate.dev", Version: "v1alpha1"}

// ApproveAnnotation on a Sync lets pass what its digest is of, and guards hold.
const ApproveAnnotation = "headgate.dev/approve"

// A Sync is one configured target.
type Sync struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// A Spec says what a sync does. Default fills in what it leaves out.
type Spec struct {
	Source Source `json:"source"`

	// ClusterName tells this cluster from others that the same commit feeds. It is part of
	// the name of every commit status, and so required with Statuses.
	ClusterName string    `json:"clusterName,omitempty"`
	Statuses    *Statuses `json:"statuses,omitempty"`
	PageURL     string    `json:"pageURL,omitempty"` // that every commit status links to

	// Previews says on every pull request into what is followed what merging it does. Of the
	// clusters that the same sync feeds one says so.
	Previews bool `json:"previews,omitempty"`
	// LivePreviews asks the cluster for counts, stored versions and what is active. Then the
	// status names the cluster, and every one may say so.
	LivePreviews bool `json:"livePreviews,omitempty"`
	// ForkPreviews allows previews of pull requests from forks.
	ForkPreviews *ForkPreviews `json:"forkPreviews,omitempty"`

	// Suspend lets the sync rest: nothing is fetched, written or said.
	Suspend bool `json:"suspend,omitempty"`
	// Interval is how long a pass comes after another while nothing happens, give or take
	// a tenth.
	Interval Duration `json:"interval,omitempty"`
	// Timeout is how long what was applied may take to become ready.
	Timeout Duration `json:"timeout,omitempty"`
	// FullCheckInterval is within how long the API server is asked of every object whether it
	// is as wanted, also of those that look as they were left: some in every pass.
	FullCheckInterval Duration `json:"fullCheckInterval,omitempty"`

	// CrossplaneVersion is the release whose package manager is followed, as v2.3.1, where it
	// is not the newest: which CRDs of a package become definitions has changed.
	CrossplaneVersion string `json:"crossplaneVersion,omitempty"`

	CRDOwner         CRDOwner         `json:"crdOwner,omitempty"`
	Catalogue        Catalogue        `json:"catalogue,omitempty"`
	Others           Others           `json:"others,omitempty"`
	Limits           Limits           `json:"limits,omitzero"`
	Packages         []Package        `json:"packages,omitempty"`
	Conversion       Conversion       `json:"conversion,omitzero"`
	ManagementPolicy ManagementPolicy `json:"managementPolicy,omitempty"`
	Adoption         Adoption         `json:"adoption,omitempty"`
	Conflicts        Conflicts        `json:"conflicts,omitempty"`

	// AdoptionLeftovers is what becomes of fields that the commit does not set, on objects that another tool
	// applied before this sync adopted them.
	AdoptionLeftovers AdoptionLeftovers `json:"adoptionLeftovers,omitempty"`

	Drift        Drift        `json:"drift,omitempty"`
	Ignore       []Ignore     `json:"ignore,omitempty"`
	Instances    Instances    `json:"instances,omitempty"`
	Deactivation Deactivation `json:"deactivation,omitempty"`

	// Approvals says which approvals in Git count.
	Approvals Approvals `json:"approvals,omitzero"`

	// MaxPrunes holds all prunes of a pass that has more. Left out, it is a fifth of what
	// the sync owns, at least 3 and at most 20.
	MaxPrunes *int `json:"maxPrunes,omitempty"`
	// MaxActivations holds what a policy or package would newly activate, if that is more definitions
	// at once: 100 if left out. Definitions that a policy names in full do not count.
	MaxActivations *int `json:"maxActivations,omitempty"`
}

// Approvals says which approvals in Git count, beside those that people give with the annotation of the Sync or on the
// command line.
type Approvals struct {
	// Trailers is which lines Headgate-Approve in the message of a commit count. The author of a change writes the message, and
	// forges copy it into merges.
	Trailers Trailers `json:"trailers,omitempty"`
	// Signers are the public keys of people who may approve in a commit that they sign, with Trailers Signed: OpenPGP keys in
	// ASCII armor, or SSH keys as authorized_keys has them.
	Signers []string `json:"signers,omitempty"`
}

// A Source is where commits come from.
type Source struct {
	Repo string `json:"repo"`           // an http(s) URL without credentials, or a path
	Ref  string `json:"ref,omitempty"`  // a branch, tag or commit; the default branch if left out
	Path string `json:"path,omitempty"` // the directory below which manifests are read; all if left out

	// TakeOver is the source, as the refusal of a pass names it, from which this Sync takes its
	// inventory over: the repository was renamed without its history, or the path was moved. It has
	// no effect once that is done, so that two Syncs cannot take one inventory from each other.
	TakeOver string `json:"takeOver,omitempty"`

	// Interval is how often to look for a new commit. Every pass does; so it is of use where
	// it is shorter than that of the Sync, and left out it is the same.
	Interval        Duration     `json:"interval,omitempty"`
	FetchTimeout    Duration     `json:"fetchTimeout,omitempty"`
	CredentialsFrom *Credentials `json:"credentialsFrom,omitempty"`

	// Webhook lets the forge tell of a push, so that a pass begins at once.
	Webhook *Webhook `json:"webhook,omitempty"`
}

// A Webhook says what a forge proves with that it sent one.
type Webhook struct {
	SecretFrom *Token `json:"secretFrom,omitempty"`
}

// Credentials say where the credentials for an https repository are. They hold none.
type Credentials struct {
	Env       *EnvCredentials `json:"env,omitempty"`
	SecretRef *SecretRef      `json:"secretRef,omitempty"`
}

// EnvCredentials are names of environment variables.
type EnvCredentials struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password"` // a token will do
}

// A Token says where a token is. It holds none.
type Token struct {
	Env       string     `json:"env,omitempty"` // name of an environment variable
	SecretRef *SecretRef `json:"secretRef,omitempty"`
}

// A SecretRef names a Secret of the cluster, in the namespace of the Sync. It is read by
// its name whenever it is needed, so what is in it may change.
type SecretRef struct {
	Name string `json:"name"`
	// Key is what to read of it: "password" of credentials, beside an optional "username";
	// "token" of a token or of a webhook; "privateKey" of an App; "ca.crt" of a CA.
	Key string `json:"key,omitempty"`
}

// Statuses are commit statuses on the forge of the repository.
type Statuses struct {
	Forge      Forge  `json:"forge,omitempty"`      // left out where the URL tells it: github.com, gitlab.example.org, /_git/
	URL        string `json:"url,omitempty"`        // of the forge, where it is not the host of the repository
	Repository string `json:"repository,omitempty"` // "owner/name" or "group/group/name", where it is not the one that commits come from
	TokenFrom  *Token `json:"tokenFrom,omitempty"`
	App        *App   `json:"app,omitempty"` // of GitHub, in place of a token
}

// An App is an installation of a GitHub App. It reads the repository, too, where nothing else
// says how.
type App struct {
	ID             int64  `json:"id"`
	Installation   int64  `json:"installation"` // the number at the end of the URL of its settings
	PrivateKeyFrom *Token `json:"privateKeyFrom,omitempty"`
}

// ForkPreviews bound what pull requests of people may ask for who may not push.
type ForkPreviews struct {
	Registries []string `json:"registries,omitempty"` // the only ones that are asked, without credentials: ghcr.io
}

// A Package declares a directory to be a provider package that has no crossplane.yaml.
type Package struct {
	Path      string `json:"path"` // of the repository, from its root
	Name      string `json:"name"` // that of the provider
	SafeStart *bool  `json:"safeStart"`
}

// Limits bound what a commit may cost to read, and what kustomize may build of it.
type Limits struct {
	FileSize  Size `json:"fileSize,omitempty"`  // of one file, and of a document with its aliases expanded: 16Mi if left out
	TotalSize Size `json:"totalSize,omitempty"` // of all files that are read: 1Gi
	Documents int  `json:"documents,omitempty"` // of all files: 100000
	Depth     int  `json:"depth,omitempty"`     // of nesting in a document: 200

	Nodes      int `json:"nodes,omitempty"`      // mappings, lists and scalars of one document: 200000
	TotalNodes int `json:"totalNodes,omitempty"` // of all documents that are decoded at the same time: 8000000, and 1000000 for a fork
}

// A Conversion says what becomes of conversion webhooks, whose service no package holds.
type Conversion struct {
	Strategy ConversionStrategy `json:"strategy,omitempty"`
	Service  *Service           `json:"service,omitempty"`
	CABundle string             `json:"caBundle,omitempty"` // PEM
	CAFrom   *SecretRef         `json:"caFrom,omitempty"`
}

// A Service is that of a webhook.
type Service struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name,omitempty"` // that of the package if left out, as with Crossplane
	Port      int64  `json:"port,omitempty"`
}

// An Ignore rule names fields that belong to another writer once the object exists: Headgate never writes them
// again, and reports no drift of them.
type Ignore struct {
	Target Target   `json:"target,omitzero"`
	Paths  []string `json:"paths"` // JSON pointers; a part * is every key, or index
}

// A Target selects objects, by regular expressions that fit the whole of a text; what it
// leaves out is any.
type Target struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// A Status is what became of a sync. It is written in a cluster only.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Revision           string             `json:"revision,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// Approvals are the digests that a person approves with: one, or several with commas or
// spaces between them.
func (s *Sync) Approvals() []string { return Digests(s.Annotations[ApproveAnnotation]) }

// Digests are the digests in a text.
func Digests(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) })
}

// IsDigest reports whether a text may be the digest of an approval, as reports show it.
func IsDigest(text string) bool { return digest.MatchString(text) }

var digest = regexp.MustCompile(`^[0-9a-f]{32}$`)

// IsRegistry reports whether a text is the host of a registry as images name it: ghcr.io, or
// registry.example.org:5000.
func IsRegistry(text string) bool {
	return registry.MatchString(text) && (strings.ContainsAny(text, ".:") || text == "localhost")
}

var registry = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?$`)

// The types of the enumerations.
type (
	// CRDOwner is who makes the CRDs of definitions.
	CRDOwner string
	// Catalogue is where definitions are looked for.
	Catalogue string
	// Others is what becomes of objects that configure Flux or Argo CD, and of documents that
	// are encrypted with SOPS.
	Others string
	// ConversionStrategy is what becomes of conversion webhooks.
	ConversionStrategy string
	// ManagementPolicy is what a sync may do.
	ManagementPolicy string
	// Adoption is whether objects are taken over that are there already.
	Adoption string
	// AdoptionLeftovers is what becomes of fields that only the tool manages that applied an object before.
	AdoptionLeftovers string
	// Conflicts is what becomes of fields that another manager owns.
	Conflicts string
	// Drift is what Headgate does about changes to what it applied.
	Drift string
	// Instances is what becomes of managed resources, XRs and claims that the commit holds no longer.
	Instances string
	// Deactivation is what becomes of active definitions that no policy names any more.
	Deactivation string
	// Trailers is which approvals in messages of commits count.
	Trailers string
	// Forge is the kind of a forge.
	Forge string
)

// The values of the enumerations. The first of each type is the default.
const (
	OwnerAuto       CRDOwner = "Auto" // Crossplane where it is installed or the commit installs it, else Headgate
	OwnerHeadgate   CRDOwner = "Headgate"
	OwnerCrossplane CRDOwner = "Crossplane"

	CatalogueCommit Catalogue = "Commit"
	CatalogueLive   Catalogue = "Live" // the cluster's definitions too

	OthersSkip   Others = "Skip" // they are counted
	OthersRefuse Others = "Refuse"
	OthersApply  Others = "Apply" // as they stand

	ConversionSafe   ConversionStrategy = "Safe" // dropped where that loses nothing, else an error
	ConversionInject ConversionStrategy = "Inject"
	ConversionNone   ConversionStrategy = "None"

	PolicyDefault    ManagementPolicy = "Default"
	PolicyObservable ManagementPolicy = "Observable" // Headgate only observes: another tool applies

	AdoptIfUnowned Adoption = "AdoptIfUnowned"
	AdoptRefuse    Adoption = "Refuse"
	AdoptAll       Adoption = "Adopt" // from Flux, Argo CD, Helm and the like too; never from Crossplane

	LeftoversKeep   AdoptionLeftovers = "Keep"   // they are listed, and a person may approve their removal
	LeftoversRemove AdoptionLeftovers = "Remove" // the pass after the adoption removes them

	ConflictsRefuse Conflicts = "Refuse" // the object fails, and the managers are named
	ConflictsTake   Conflicts = "Take"

	DriftCorrect Drift = "Correct"
	DriftReport  Drift = "Report" // nothing that drifted is written; it is said

	InstancesHold  Instances = "Hold"
	InstancesPrune Instances = "Prune" // what they stand for outside of the cluster goes too

	TrailersNever  Trailers = "Never"
	TrailersSigned Trailers = "Signed" // in a commit that one of the signers signed
	TrailersAny    Trailers = "Any"    // in every commit: whoever may merge approves, and so does an author whose message is copied

	DeactivationNever      Deactivation = "Never"      // they stay, as Crossplane has it
	DeactivationWhenUnused Deactivation = "WhenUnused" // Headgate deactivates them once nothing uses them

	ForgeGitHub              Forge = "GitHub"
	ForgeGitLab              Forge = "GitLab"
	ForgeGitea               Forge = "Gitea"
	ForgeForgejo             Forge = "Forgejo"
	ForgeBitbucket           Forge = "Bitbucket" // Cloud
	ForgeBitbucketDataCenter Forge = "BitbucketDataCenter"
	ForgeAzureDevOps         Forge = "AzureDevOps"
)

// An Enumeration is a field of a Spec with a closed set of values, of which the first is the default.
type Enumeration struct {
	Field  string // path of the field: "spec.crdOwner"
	Values []string
	// Writes reports whether the field only concerns writes, so that it has no effect with PolicyObservable.
	Writes bool

	Value func() string
	Set   func(value string)
}

// Enumerations returns the enumerations of a Spec. Default and Validate apply to all of them, and package
// target maps each to a flag and to what it sets.
func (s *Spec) Enumerations() []Enumeration {
	return []Enumeration{
		enumeration("spec.crdOwner", &s.CRDOwner, OwnerAuto, OwnerHeadgate, OwnerCrossplane),
		enumeration("spec.catalogue", &s.Catalogue, CatalogueCommit, CatalogueLive),
		enumeration("spec.others", &s.Others, OthersSkip, OthersRefuse, OthersApply),
		enumeration("spec.conversion.strategy", &s.Conversion.Strategy, ConversionSafe, ConversionInject, ConversionNone),
		enumeration("spec.managementPolicy", &s.ManagementPolicy, PolicyDefault, PolicyObservable),
		enumeration("spec.adoption", &s.Adoption, AdoptIfUnowned, AdoptRefuse, AdoptAll).ofWrites(),
		enumeration("spec.adoptionLeftovers", &s.AdoptionLeftovers, LeftoversKeep, LeftoversRemove).ofWrites(),
		enumeration("spec.conflicts", &s.Conflicts, ConflictsRefuse, ConflictsTake).ofWrites(),
		enumeration("spec.drift", &s.Drift, DriftCorrect, DriftReport),
		enumeration("spec.instances", &s.Instances, InstancesHold, InstancesPrune).ofWrites(),
		enumeration("spec.approvals.trailers", &s.Approvals.Trailers, TrailersNever, TrailersSigned, TrailersAny).ofWrites(),
		enumeration("spec.deactivation", &s.Deactivation, DeactivationNever, DeactivationWhenUnused).ofWrites(),
	}
}

func enumeration[T ~string](field string, of *T, values ...T) Enumeration {
	e := Enumeration{Field: field, Value: func() string { return string(*of) }, Set: func(value string) { *of = T(value) }}
	for _, v := range values {
		e.Values = append(e.Values, string(v))
	}
	return e
}

func (e Enumeration) ofWrites() Enumeration {
	e.Writes = true
	return e
}

var (
	// Forges are all values of Forge. Statuses may leave it out.
	Forges = []Forge{ForgeGitHub, ForgeGitLab, ForgeGitea, ForgeForgejo, ForgeBitbucket, ForgeBitbucketDataCenter, ForgeAzureDevOps}

	forgesWithApps = []Forge{ForgeGitHub}
)

// The defaults of what is no enumeration.
const (
	DefaultNamespace    = "headgate-system"
	DefaultInterval     = time.Minute
	DefaultTimeout      = 5 * time.Minute
	DefaultFullCheck    = time.Hour
	DefaultFetchTimeout = 10 * time.Minute
	DefaultPasswordEnv  = "HEADGATE_GIT_PASSWORD" //nolint:gosec // the name of a variable
	DefaultUsernameEnv  = "HEADGATE_GIT_USERNAME"
	DefaultTokenEnv     = "HEADGATE_FORGE_TOKEN" //nolint:gosec // the name of a variable
	DefaultWebhookEnv   = "HEADGATE_WEBHOOK_SECRET"
	DefaultAppKeyEnv    = "HEADGATE_APP_KEY"
)

// Default fills in what a Sync leaves out.
func (s *Sync) Default() {
	orDefault(&s.Namespace, DefaultNamespace)
	spec := &s.Spec
	orDefault(&spec.Interval, Duration(DefaultInterval.String()))
	orDefault(&spec.Timeout, Duration(DefaultTimeout.String()))
	orDefault(&spec.FullCheckInterval, Duration(DefaultFullCheck.String()))
	orDefault(&spec.Source.FetchTimeout, Duration(DefaultFetchTimeout.String()))
	for _, e := range spec.Enumerations() {
		if e.Value() == "" {
			e.Set(e.Values[0])
		}
		for _, v := range e.Values { // a flag has the same words in lower case
			if strings.EqualFold(e.Value(), v) {
				e.Set(v)
			}
		}
	}
	if to := spec.Statuses; to != nil {
		for _, f := range Forges {
			if strings.EqualFold(string(to.Forge), string(f)) {
				to.Forge = f
			}
		}
	}
	if to := spec.Statuses; to != nil && to.App == nil && to.TokenFrom == nil {
		to.TokenFrom = &Token{Env: DefaultTokenEnv}
	}
	if to := spec.Statuses; to != nil && to.App != nil && to.App.PrivateKeyFrom == nil {
		to.App.PrivateKeyFrom = &Token{Env: DefaultAppKeyEnv}
	}
	if hook := spec.Source.Webhook; hook != nil && hook.SecretFrom == nil {
		hook.SecretFrom = &Token{Env: DefaultWebhookEnv}
	}
	if spec.Source.CredentialsFrom == nil {
		spec.Source.CredentialsFrom = &Credentials{Env: &EnvCredentials{Username: DefaultUsernameEnv, Password: DefaultPasswordEnv}}
	}
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// A Duration is written as Go writes one: "1m30s".
type Duration string

// Duration is the duration, 0 of what is none. Validate refuses that.
func (d Duration) Duration() time.Duration {
	v, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return v
}

// A Size is written as Kubernetes writes one: "16Mi".
type Size string

// Bytes is the size in bytes, 0 of what is none. Validate refuses that.
func (s Size) Bytes() int64 {
	q, err := resource.ParseQuantity(string(s))
	if err != nil {
		return 0
	}
	return q.Value()
}
