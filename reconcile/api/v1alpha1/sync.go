// Package v1alpha1 holds the Sync: one repository and path, applied to one cluster. A file and a cluster hold the
// same type with the same meaning. Package target runs it.
//
// +kubebuilder:object:generate=true
// +groupName=headgate.dev
package v1alpha1

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is the kind of a Sync.
const Kind = "Sync"

// GroupVersion is the API group and version of this package.
var GroupVersion = schema.GroupVersion{Group: "headgate.dev", Version: "v1alpha1"}

// ApproveAnnotation on a Sync holds approvals: DIGEST up to NUMBER by USER at TIME. Each approves what the digest of a report covers
// and guards hold. The number, the user and the time may be missing.
const ApproveAnnotation = "headgate.dev/approve"

// A Sync is one configured target.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=syncs,shortName=hgs,categories=headgate;gitops
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.counts.active`
// +kubebuilder:printcolumn:name="Held",type=integer,JSONPath=`.status.counts.held`
// +kubebuilder:printcolumn:name="Drifted",type=integer,JSONPath=`.status.counts.drifted`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.lastAppliedRevision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Status",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.dependsOn) || self.spec.dependsOn.all(d, d.name != self.metadata.name)",message="a Sync cannot depend on itself",fieldPath=".spec.dependsOn"
type Sync struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitzero"`
}

// A Spec configures a sync. Default fills in missing fields.
//
// +kubebuilder:validation:XValidation:rule="!has(self.statuses) || has(self.clusterName)",message="is missing: statuses need it to tell clusters apart that post to the same commit",fieldPath=".clusterName"
// +kubebuilder:validation:XValidation:rule="!has(self.source.sourceRef) || !(has(self.previews) && self.previews)",message="needs source.repo: an artifact of Flux has no pull requests",fieldPath=".previews"
// +kubebuilder:validation:XValidation:rule="!has(self.source.sourceRef) || !has(self.statuses) || has(self.statuses.url) && has(self.statuses.repository)",message="needs url and repository beside sourceRef",fieldPath=".statuses"
// +kubebuilder:validation:XValidation:rule="!has(self.suspension) || has(self.suspend) && self.suspend",message="has no effect without suspend: true",fieldPath=".suspension"
// +kubebuilder:validation:XValidation:rule="!has(self.pageURL) || has(self.statuses)",message="has no effect without spec.statuses, which link to it",fieldPath=".pageURL"
// +kubebuilder:validation:XValidation:rule="has(self.previews) && self.previews || !(has(self.livePreviews) && self.livePreviews)",message="has no effect without previews: true",fieldPath=".livePreviews"
// +kubebuilder:validation:XValidation:rule="has(self.previews) && self.previews || !has(self.forkPreviews)",message="has no effect without previews: true",fieldPath=".forkPreviews"
// +kubebuilder:validation:XValidation:rule="!(has(self.previews) && self.previews) || has(self.statuses)",message="needs spec.statuses, which names the forge of the pull requests and its token",fieldPath=".previews"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || self.adoption == 'AdoptIfUnowned'",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".adoption"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || self.adoptionLeftovers == 'Keep'",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".adoptionLeftovers"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || self.conflicts == 'Refuse'",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".conflicts"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || self.instances == 'Hold'",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".instances"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || self.deactivation == 'Never'",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".deactivation"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || self.source.history == 'Any'",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".source.history"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || !has(self.maxPrunes)",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".maxPrunes"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || !has(self.maxActivations)",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".maxActivations"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || !has(self.release)",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".release"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || !has(self.allowedKinds)",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".allowedKinds"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || !has(self.activation)",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".activation"
// +kubebuilder:validation:XValidation:rule="self.managementPolicy != 'Observable' || !has(self.references)",message="has no effect with managementPolicy Observable; leave it out",fieldPath=".references"
type Spec struct {
	Source Source `json:"source"`

	// ClusterName distinguishes this cluster from others that follow the same branch. It is part of the name of every
	// commit status, so a Sync with statuses requires it.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`
	ClusterName string    `json:"clusterName,omitempty"`
	Statuses    *Statuses `json:"statuses,omitempty"`
	// the page that every commit status links to
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^@/?#\s]+([/?#]\S*)?$`
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="must be an http(s) URL"
	PageURL string `json:"pageURL,omitempty"`

	// Previews posts a preview on every pull request into the branch. Set it in one process; for many clusters, run one with --previews.
	Previews bool `json:"previews,omitempty"`
	// LivePreviews reads counts, stored versions and active definitions from the cluster. The status then names the
	// cluster, so every cluster may set it.
	LivePreviews bool `json:"livePreviews,omitempty"`
	// PreviewRegistries are the hosts of registries that a pull request may name although its target does not, such as
	// ghcr.io. Every pull request may name xpkg.crossplane.io and xpkg.upbound.io.
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(localhost|[A-Za-z0-9][A-Za-z0-9.-]*\.[A-Za-z0-9.-]*[A-Za-z0-9]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}|[A-Za-z0-9][A-Za-z0-9.-]*\.[A-Za-z0-9.-]*[A-Za-z0-9]:[0-9]{1,5}|\[[0-9A-Fa-f:]+\](:[0-9]{1,5})?)$`
	PreviewRegistries []string `json:"previewRegistries,omitempty"`
	// ForkPreviews allows previews of pull requests from forks.
	ForkPreviews *ForkPreviews `json:"forkPreviews,omitempty"`
	// PreviewTrust lists the new versions of packages that need no look before a merge, if no schema breaks. It replaces the
	// default: minor versions of a Provider, and patches of a Configuration or a Function. With an empty list, no version is trusted.
	// +listType=map
	// +listMapKey=kind
	// +kubebuilder:validation:MaxItems=3
	PreviewTrust []PreviewTrust `json:"previewTrust,omitzero"`

	// Suspend stops the writes of the sync. Passes, previews and statuses go on, and report what waits.
	Suspend bool `json:"suspend,omitempty"`
	// Suspension describes why and until when the sync is suspended.
	Suspension *Suspension `json:"suspension,omitempty"`
	// Interval is the time between passes while nothing changes, plus or minus a tenth.
	// +kubebuilder:default="1m0s"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be a duration such as 30s, 5m or 1h, at least 1s and at most 8760h"
	Interval Duration `json:"interval,omitempty"`
	// Timeout is how long applied objects may take to become ready. For CRDs, it begins again whenever one of them is established.
	// +kubebuilder:default="5m0s"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be a duration such as 30s, 5m or 1h, at least 1s and at most 8760h"
	Timeout Duration `json:"timeout,omitempty"`
	// FullCheckInterval is the time within which Headgate checks every object, including unchanged ones, with a dry
	// run. Each pass checks some of them.
	// +kubebuilder:default="1h0m0s"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="must be a duration such as 30s, 5m or 1h, at least 1m and at most 8760h"
	FullCheckInterval Duration `json:"fullCheckInterval,omitempty"`

	// CrossplaneVersion is the Crossplane release whose package rules apply, such as v2.3.1. The default is the
	// newest release that Headgate supports. Releases differ in which CRDs of a package become definitions.
	// +kubebuilder:validation:Pattern=`^v?([2-9]|[1-9][0-9]+)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`
	CrossplaneVersion string `json:"crossplaneVersion,omitempty"`

	// KubernetesVersion is the Kubernetes release of the cluster, such as 1.34. Kinds, versions and fields that it
	// does not have are then errors of a commit. By default, they are warnings, because the release is not known.
	// +kubebuilder:validation:Pattern=`^v?1\.[1-9][0-9]{0,2}(\.[0-9]+)?([+-].*)?$`
	KubernetesVersion string `json:"kubernetesVersion,omitempty"`

	// Schemas lists files and directories of the repository with CRDs, definitions and XRDs that something else
	// applies. Headgate checks objects against them, and does not apply them.
	// +kubebuilder:validation:items:Pattern=`^([^/.][^/]*|\.([^/.][^/]*)?|\.\.[^/]+)(/([^/.][^/]*|\.([^/.][^/]*)?|\.\.[^/]+)?)*$`
	Schemas []string `json:"schemas,omitempty"`

	// +kubebuilder:default=Auto
	CRDOwner CRDOwner `json:"crdOwner,omitempty"`
	// +kubebuilder:default=Commit
	Catalogue Catalogue `json:"catalogue,omitempty"`
	// +kubebuilder:default=Skip
	Others Others `json:"others,omitempty"`
	Limits Limits `json:"limits,omitzero"`
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(p, self.exists_one(other, other.path == p.path))",message="lists a path twice"
	Packages []Package `json:"packages,omitempty"`
	// +kubebuilder:default={strategy: "Safe"}
	Conversion Conversion `json:"conversion,omitzero"`
	// +kubebuilder:default=Default
	ManagementPolicy ManagementPolicy `json:"managementPolicy,omitempty"`
	// +kubebuilder:default=AdoptIfUnowned
	Adoption Adoption `json:"adoption,omitempty"`
	// +kubebuilder:default=Refuse
	Conflicts Conflicts `json:"conflicts,omitempty"`

	// AdoptionLeftovers is how to treat fields that the commit does not set, on objects that another tool applied
	// before this sync adopted them.
	// +kubebuilder:default=Keep
	AdoptionLeftovers AdoptionLeftovers `json:"adoptionLeftovers,omitempty"`

	// Release lists objects that Headgate forgets instead of deleting once the commit no longer declares them. Write
	// them as 'headgate status --full' shows them: ConfigMap/team/settings.
	// +listType=set
	// +kubebuilder:validation:items:Pattern=`^[A-Z][A-Za-z0-9]*(\.[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?(/[a-z0-9]([a-z0-9-]*[a-z0-9])?)?/[^/\s]+$`
	Release []string `json:"release,omitempty"`

	// +kubebuilder:default=Correct
	Drift Drift `json:"drift,omitempty"`
	// +kubebuilder:validation:MaxItems=100
	Ignore []Ignore `json:"ignore,omitempty"`
	// +kubebuilder:default=Hold
	Instances Instances `json:"instances,omitempty"`
	// +kubebuilder:default=Never
	Deactivation Deactivation `json:"deactivation,omitempty"`

	// Approvals configures which approvals in Git count.
	// +kubebuilder:default={trailers: "Never"}
	Approvals Approvals `json:"approvals,omitzero"`

	// AllowedKinds lists the objects that this sync may apply and prune. The guard allowed holds every other object.
	// If the field is left out, every kind is allowed.
	// +kubebuilder:validation:MinItems=1
	AllowedKinds []AllowedKind `json:"allowedKinds,omitempty"`
	// References limits what objects of the commit may copy from other objects.
	References References `json:"references,omitzero"`
	// Activation limits what this sync may activate. If it is left out, there is no limit.
	Activation *Activation `json:"activation,omitempty"`

	// MaxPrunes is the maximum number of prunes in a pass. Headgate holds all prunes of a pass with more. The default
	// is a fifth of the owned objects, at least 3 and at most 20.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	MaxPrunes *int `json:"maxPrunes,omitempty"`
	// MaxActivations is the maximum number of definitions that one policy or package may newly activate. Headgate
	// holds a larger activation. The default is 100. Definitions that a policy names in full do not count.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	MaxActivations *int `json:"maxActivations,omitempty"`

	// HealthCheckExprs decide with expressions (CEL) when objects are ready, as in a Kustomization of Flux, in place of the rules for their
	// kinds.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=50
	// +kubebuilder:validation:XValidation:rule="self.all(c, self.exists_one(o, o.apiVersion.split('/')[0] == c.apiVersion.split('/')[0] && (has(o.kind) ? o.kind : '') == (has(c.kind) ? c.kind : '')))",message="lists a kind twice"
	HealthCheckExprs []HealthCheck `json:"healthCheckExprs,omitempty"`

	// ServiceAccountName is the service account in the namespace of the Sync as which the controller reads and writes for
	// it. The default is the controller's --default-service-account. Only a Sync object has one.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// KubeConfig selects another cluster than the controller's: the objects and the inventory of this Sync are there. The
	// service account reads the Secrets of the Sync here, and the kubeconfig decides who Headgate is there. Only a Sync
	// object has one.
	KubeConfig *KubeConfig `json:"kubeConfig,omitempty"`
	// DependsOn lists Syncs of the same namespace that come first: no pass is made before they are as far as until says.
	// Only a Sync object has them.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	DependsOn []Dependency `json:"dependsOn,omitempty"`
	// DeletionPolicy decides what happens to the applied objects when the Sync object is deleted. With Orphan, which is
	// the default, they stay. With Delete, Headgate deletes them, as far as guards allow. They always stay if the namespace
	// or the CRD of the Sync goes. Only a Sync object has one.
	// +kubebuilder:validation:Enum=Orphan;Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// A Suspension describes a suspended sync. It decides nothing: only suspend does.
type Suspension struct {
	// Until is when the suspension should have ended, such as 2026-01-31T12:00:00Z. It goes on afterwards, and is overdue: the
	// condition Suspended, an Event and a metric show that.
	Until *metav1.Time `json:"until,omitempty"`
	// why the sync is suspended
	// +kubebuilder:validation:MaxLength=256
	Why string `json:"why,omitempty"`
	// who suspended it
	// +kubebuilder:validation:MaxLength=253
	By string `json:"by,omitempty"`
}

// A HealthCheck decides when objects of a kind are ready. Its expressions are evaluated in the order inProgress, failed, current. An object
// for which none is true, or one fails, is in progress.
//
// +kubebuilder:validation:XValidation:rule="!(self.apiVersion.split('/')[0] in ['apiextensions.k8s.io', 'apiextensions.crossplane.io', 'pkg.crossplane.io'])",message="Headgate itself decides when CRDs, definitions, policies and packages are ready; leave it out",fieldPath=".apiVersion"
type HealthCheck struct {
	// APIVersion is the API group and version of the objects, such as cert-manager.io/v1. Other versions of the group count, too.
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:Pattern=`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?v[a-z0-9]+$`
	APIVersion string `json:"apiVersion"`
	// the kind; every kind of the group that has no check of its own if left out
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z0-9]*$`
	Kind string `json:"kind,omitempty"`
	// Current is true for an object that is ready, such as status.phase == 'Running'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	Current string `json:"current"`
	// InProgress is true for an object that is not ready yet.
	// +kubebuilder:validation:MaxLength=2048
	InProgress string `json:"inProgress,omitempty"`
	// Failed is true for an object that does not become ready.
	// +kubebuilder:validation:MaxLength=2048
	Failed string `json:"failed,omitempty"`
}

// A KubeConfig selects a remote cluster.
type KubeConfig struct {
	// SecretRef is the Secret with the kubeconfig, under the key "value" or "value.yaml", as in Flux. It holds all credentials
	// itself: plugins (exec), auth providers, files, servers without TLS and insecure-skip-tls-verify are refused.
	SecretRef SecretRef `json:"secretRef"`
}

// A Dependency is a Sync that comes first.
type Dependency struct {
	// Name is the name of the other Sync.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
	// Until is how far it has to be. With Applied, which is the default, everything that no guard holds is applied. With
	// Ready, nothing is held, either.
	// +kubebuilder:validation:Enum=Applied;Ready
	Until Until `json:"until,omitempty"`
}

// Until is how far a dependency has to be.
type Until string

// The values of Until; the first is the default.
const (
	UntilApplied Until = "Applied"
	UntilReady   Until = "Ready"
)

// DeletionPolicy is what happens to the objects of a Sync that is deleted.
type DeletionPolicy string

// The deletion policies; the first is the default.
const (
	DeletionOrphan DeletionPolicy = "Orphan"
	DeletionDelete DeletionPolicy = "Delete"
)

// An AllowedKind selects objects that a sync may apply and prune. Its values are patterns with *, ? and [a-z], as in policies.
//
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.scope != 'Cluster' || !has(self.namespaces)",message="has no effect with scope: Cluster; leave one of them out",fieldPath=".namespaces"
type AllowedKind struct {
	// the API group without a version; if left out, the core group of ConfigMap and Secret
	// +kubebuilder:validation:Pattern=`^([^\\\[/]|\\[^/]|\[\^?(([^\\\]/-]|\\[^/])(-([^\\\]/-]|\\[^/]))?)+\])+$`
	Group string `json:"group,omitempty"`
	// the kind
	// +kubebuilder:validation:Pattern=`^([^\\\[./]|\\[^./]|\[\^?(([^\\\]./-]|\\[^./])(-([^\\\]./-]|\\[^./]))?)+\])+$`
	Kind string `json:"kind"`
	// Scope is Namespaced for objects in namespaces, which is the default, or Cluster for cluster-scoped objects.
	Scope Scope `json:"scope,omitempty"`
	// the namespaces of the objects; every namespace if left out
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Pattern=`^([^\\\[]|\\(.|\n)|\[\^?(([^\\\]-]|\\(.|\n))(-([^\\\]-]|\\(.|\n)))?)+\])+$`
	Namespaces []string `json:"namespaces,omitempty"`
	// the names of the objects; every name if left out
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Pattern=`^([^\\\[]|\\(.|\n)|\[\^?(([^\\\]-]|\\(.|\n))(-([^\\\]-]|\\(.|\n)))?)+\])+$`
	Names []string `json:"names,omitempty"`
}

// A Scope is either Namespaced or Cluster.
//
// +kubebuilder:validation:Enum=Namespaced;Cluster
type Scope string

// The scopes.
const (
	ScopeNamespaced Scope = "Namespaced"
	ScopeCluster    Scope = "Cluster"
)

// References limits what config.kubernetes.io/apply-time-mutation may copy.
type References struct {
	// FromSecrets allows references to Secrets, which Headgate then reads. If it is false, Headgate refuses a commit
	// with such a reference.
	FromSecrets *bool `json:"fromSecrets,omitempty"`
	// Namespaces lists patterns of the namespaces from which references copy, in place of the namespaces in
	// allowedKinds. Groups, kinds and names in allowedKinds limit references in any case.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Pattern=`^([^\\\[]|\\(.|\n)|\[\^?(([^\\\]-]|\\(.|\n))(-([^\\\]-]|\\(.|\n)))?)+\])+$`
	Namespaces []string `json:"namespaces,omitempty"`
}

// Activation limits what a sync may activate.
type Activation struct {
	// Allow lists patterns of names of definitions, as policies do. Headgate holds a policy, definition, CRD or
	// package of the commit that activates any other definition. An empty list allows nothing.
	// +kubebuilder:validation:items:Pattern=`^([^\\\[/A-Z]|\\[^/A-Z]|\[\^?(([^\\\]/A-Z-]|\\[^/A-Z])(-([^\\\]/A-Z-]|\\[^/A-Z]))?)+\])+$`
	Allow []string `json:"allow"`
}

// Approvals configures which approvals in Git count, in addition to those in the annotation of the Sync and on the command line.
//
// +kubebuilder:validation:XValidation:rule="!has(self.comments) || self.comments != 'Never' || !(has(self.reviews) && self.reviews || has(self.byAuthor) && self.byAuthor == 'Allow' || has(self.approvers))",message="is Never, so reviews, byAuthor and approvers have no effect: remove them",fieldPath=".comments"
// +kubebuilder:validation:XValidation:rule="self.trailers == 'Never' && !has(self.signers)",message="approvals in commit messages do not count; leave trailers and signers out"
type Approvals struct {
	// Trailers has no effect any more: approvals in commit messages do not count. A user who may sign or merge commits
	// may write the file .headgate/approvals.yaml.
	// +kubebuilder:default=Never
	Trailers Trailers `json:"trailers,omitempty"`
	// Signers have no effect any more, as trailers.
	Signers []string `json:"signers,omitempty"`

	// Comments enables approval with '/headgate approve DIGEST HEAD' in a comment on a pull request. The writer needs
	// write access to the repository and must not be the author of the pull request. The value is Count, the default, or
	// Never. Headgate needs statuses to read comments.
	// +kubebuilder:validation:Enum=Count;Never
	Comments string `json:"comments,omitempty"`
	// Reviews lets a review that approves the previewed commit count like such a comment.
	Reviews bool `json:"reviews,omitempty"`
	// ByAuthor decides whether the authors of a pull request may approve it in a comment: Refuse, the default, or
	// Allow. Allow is for teams of one.
	// +kubebuilder:validation:Enum=Refuse;Allow
	ByAuthor string `json:"byAuthor,omitempty"`
	// Approvers are the users of the forge who may approve in comments and reviews. The default is everyone with write access.
	// Use id:NUMBER with the user's ID on GitHub, GitLab, Gitea, Forgejo and Bitbucket Data Center. A name is that of the user who
	// has it when the process starts; after that user changes it, another user can take it before the next start.
	// Bitbucket and Azure DevOps do not report who has it, so only listed users count there. Use the account ID or UUID for
	// Bitbucket Cloud, the user name for Bitbucket Data Center, and the unique name for Azure DevOps.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Pattern=`^@?[A-Za-z0-9{][A-Za-z0-9._@:+\\{}-]{0,254}$`
	Approvers []string `json:"approvers,omitempty"`

	// Targets are branches. If the Sync follows tags or a commit, comments and reviews count on the pull request that merged the
	// commit into one of these branches. A Sync that follows a branch counts only pull requests into that branch.
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^[^ \t\n~^:?*\[\\]+$`
	// +kubebuilder:validation:XValidation:rule="self.all(name, !name.startsWith('refs/'))",message="must be names of branches, without refs/heads/"
	Targets []string `json:"targets,omitempty"`
}

// The values of Approvals.Comments and Approvals.ByAuthor; the first is the default.
const (
	CommentsCount  = "Count"
	CommentsNever  = "Never"
	ByAuthorRefuse = "Refuse"
	ByAuthorAllow  = "Allow"
)

// A Source is a repository and the part of it that a sync applies.
//
// +kubebuilder:validation:XValidation:rule="has(self.repo) || has(self.sourceRef)",message="is missing",fieldPath=".repo"
// +kubebuilder:validation:XValidation:rule="!has(self.repo) || !has(self.sourceRef)",message="excludes repo",fieldPath=".sourceRef"
// +kubebuilder:validation:XValidation:rule="!has(self.sourceRef) || !has(self.ref) && !has(self.credentialsFrom) && !has(self.webhook) && self.verify.mode == 'Never' && self.history == 'Any'",message="excludes ref, credentialsFrom, webhook, verify and history: the source of Flux has its own",fieldPath=".sourceRef"
// +kubebuilder:validation:XValidation:rule="!has(self.proxySecretRef) || has(self.repo) && !self.repo.startsWith('ssh://') && !has(self.proxySecretRef.key)",message="needs an https repository, and no key",fieldPath=".proxySecretRef"
// +kubebuilder:validation:XValidation:rule="!has(self.repo) || !self.repo.startsWith('ssh://') || has(self.credentialsFrom) && has(self.credentialsFrom.secretRef)",message="must name a Secret with identity and known_hosts in secretRef, because the repository is read over ssh",fieldPath=".credentialsFrom"
// +kubebuilder:validation:XValidation:rule="!(self.verify.mode in ['Tag', 'TagAndHead']) || has(self.ref) && size(self.ref) > 0 && (!self.ref.startsWith('refs/') || self.ref.startsWith('refs/tags/')) && !self.ref.matches('^[0-9a-fA-F]{40}$')",message="must name a tag if verify.mode is Tag or TagAndHead",fieldPath=".ref"
type Source struct {
	// an http(s) URL without credentials, an ssh URL such as ssh://git@example.org/team/platform.git, or a path; left out with sourceRef
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^(https?://[^@/?#\s]+([/?#]\S*)?|ssh://([A-Za-z0-9_][A-Za-z0-9._-]*@)?[^@/?#\s-][^@/?#\s]*/[^?#\s]+)$`
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="must be an https URL without credentials, or an ssh URL"
	Repo string `json:"repo,omitempty"`
	// SourceRef names a source of Flux, in place of repo. Headgate applies the artifact that the source-controller made of it, after
	// it has checked the digest. Only a Sync object has one.
	SourceRef *SourceRef `json:"sourceRef,omitempty"`
	// a branch, tag or commit, or the newest tag in a range of versions: semver:>=1.2.0 <2; the default branch if left out
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('semver:') || self.matches('^semver:[-0-9A-Za-z.<>=~^|,*+! ]{1,200}$')",message="must be a range of versions after semver:, such as semver:>=1.2.0 <2"
	Ref string `json:"ref,omitempty"`
	// the directory below which Headgate reads manifests; the whole repository if left out
	// +kubebuilder:validation:Pattern=`^([^/.][^/]*|\.([^/.][^/]*)?|\.\.[^/]+)(/([^/.][^/]*|\.([^/.][^/]*)?|\.\.[^/]+)?)*$`
	Path string `json:"path,omitempty"`

	// TakeOver is the source whose inventory this Sync takes over, as named by the pass that was refused. Set it
	// after ref or path changed, or after a repository was renamed without its history. It has no effect afterwards,
	// so two Syncs cannot take one inventory from each other.
	TakeOver string `json:"takeOver,omitempty"`

	// Interval is the time between checks for a new commit. The default is the interval of the Sync. Only a shorter
	// one has an effect, because every pass also checks.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be a duration such as 30s, 5m or 1h, at least 1s and at most 8760h"
	Interval Duration `json:"interval,omitempty"`
	// FetchTimeout is how long one fetch from the repository may take.
	// +kubebuilder:default="10m0s"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('8760h')",message="must be a duration such as 30s, 5m or 1h, at least 1s and at most 8760h"
	FetchTimeout    Duration     `json:"fetchTimeout,omitempty"`
	CredentialsFrom *Credentials `json:"credentialsFrom,omitempty"`
	// a Secret with the proxy for an https repository, as in Flux: address, username and password. The default is that of the environment.
	ProxySecretRef *SecretRef `json:"proxySecretRef,omitempty"`

	// Webhook accepts webhooks of the forge, so that a pass begins right after a push.
	Webhook *Webhook `json:"webhook,omitempty"`

	// Verify configures which signatures a commit needs. Headgate neither renders nor applies a commit without them.
	// +kubebuilder:default={mode: "Never"}
	Verify Verify `json:"verify,omitzero"`
	// History limits which commits may follow the last applied one. With FastForward, a commit that does not descend
	// from it needs the approval of a person: until then, Headgate holds its changes.
	// +kubebuilder:default=Any
	History History `json:"history,omitempty"`
}

// A SourceRef names an object of Flux whose status has an artifact.
type SourceRef struct {
	// the kind
	// +kubebuilder:validation:Enum=GitRepository;OCIRepository;ExternalArtifact
	Kind string `json:"kind"`
	// the name
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
	// the namespace; that of the Sync if left out. The service account of the Sync must be allowed to get the object.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace,omitempty"`
}

// SourceKinds are the values of SourceRef.Kind, with the plurals in the API of Flux.
var SourceKinds = map[string]string{"GitRepository": "gitrepositories", "OCIRepository": "ocirepositories", "ExternalArtifact": "externalartifacts"}

// Resource returns the kind of the source as the API server names it.
func (r SourceRef) Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: SourceKinds[r.Kind]}
}

// Verify configures which signatures a commit needs to be applied.
//
// +kubebuilder:validation:XValidation:rule="self.mode != 'Never' || !(has(self.keys) && size(self.keys) > 0 || has(self.keysFrom))",message="is missing, so the keys have no effect; set Head, Tag or TagAndHead",fieldPath=".mode"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Never' || has(self.keys) && size(self.keys) > 0 || has(self.keysFrom)",message="is missing: list public keys, one of which must have signed, or name their Secret in keysFrom",fieldPath=".keys"
type Verify struct {
	// Mode selects what needs a signature: the commit, the annotated tag that ref names, or both.
	// +kubebuilder:default=Never
	Mode VerifyMode `json:"mode,omitempty"`
	// Keys are public keys, one of which must have signed. They are OpenPGP keys in ASCII armor, or SSH keys as in
	// authorized_keys. If the forge makes the merge commits, include its key.
	Keys []string `json:"keys,omitempty"`
	// KeysFrom is a Secret with additional keys: the value of key, or every value if key is left out.
	KeysFrom *SecretRef `json:"keysFrom,omitempty"`
}

// A Webhook names the secret that a forge signs its webhooks with.
//
// +kubebuilder:validation:XValidation:rule="has(self.secretFrom)",message="is missing",fieldPath=".secretFrom"
type Webhook struct {
	SecretFrom *Token `json:"secretFrom,omitempty"`
}

// Credentials select where Headgate reads the credentials for a repository. The default is HEADGATE_GIT_PASSWORD and
// HEADGATE_GIT_USERNAME, and over ssh HEADGATE_GIT_IDENTITY and HEADGATE_GIT_KNOWN_HOSTS, if they are set and all Syncs of the process
// use the same host.
//
// +kubebuilder:validation:XValidation:rule="!has(self.env)",message="a Sync object reads it from a Secret, because the environment of the controller is not for Syncs",fieldPath=".env"
// +kubebuilder:validation:XValidation:rule="(has(self.anonymous) && self.anonymous) != (has(self.env) || has(self.secretRef))",message="specify secretRef or anonymous, and not both"
type Credentials struct {
	// Anonymous sends no credentials to the repository.
	Anonymous bool            `json:"anonymous,omitempty"`
	Env       *EnvCredentials `json:"env,omitempty"`
	// a Secret as in Flux: password and username, ca.crt for a CA, tls.crt and tls.key for a client certificate; over ssh identity, which is a private key, known_hosts, and password if the key has
	// a passphrase
	SecretRef *SecretRef `json:"secretRef,omitempty"`
}

// EnvCredentials names environment variables.
type EnvCredentials struct {
	// variable that holds the user name
	Username string `json:"username,omitempty"`
	// variable that holds the password or token; over ssh, the passphrase of the key
	Password string `json:"password,omitempty"`
	// variable that holds a private key for ssh, or the absolute path of its file
	Identity string `json:"identity,omitempty"`
	// variable that holds lines of a known_hosts file for ssh, or the absolute path of the file
	KnownHosts string `json:"knownHosts,omitempty"`
	// variable that holds certificates of a CA for https, or the absolute path of their file
	CA string `json:"ca,omitempty"`
}

// A Token selects where Headgate reads a token.
//
// +kubebuilder:validation:XValidation:rule="!has(self.env)",message="a Sync object reads it from a Secret, because the environment of the controller is not for Syncs",fieldPath=".env"
// +kubebuilder:validation:XValidation:rule="has(self.env) != has(self.secretRef)",message="specify secretRef"
type Token struct {
	// the environment variable that holds the token or secret
	Env       string     `json:"env,omitempty"`
	SecretRef *SecretRef `json:"secretRef,omitempty"`
}

// A SecretRef names a Secret in the namespace of the Sync. Headgate reads it on every use, so you can rotate its values.
type SecretRef struct {
	// name of the Secret
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
	// Key is the key to read. The default is "password" for credentials, which may also have a "username", and "identity" over ssh;
	// "token" for a token or a webhook; "privateKey" for an App; "ca.crt" for a CA; "value" or "value.yaml" for a kubeconfig. For public keys, the default is every key.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^\.?[-_a-zA-Z0-9][-._a-zA-Z0-9]*$`
	Key string `json:"key,omitempty"`
}

// Statuses describes where Headgate posts commit statuses.
//
// +kubebuilder:validation:XValidation:rule="has(self.tokenFrom) != has(self.app)",message="specify tokenFrom or app, and not both"
// +kubebuilder:validation:XValidation:rule="!has(self.app) || !has(self.forge) || self.forge == 'GitHub'",message="needs forge: GitHub",fieldPath=".app"
type Statuses struct {
	// the kind of the forge; optional if the URL shows it, as github.com or /_git/ do
	Forge Forge `json:"forge,omitempty"`
	// URL of the forge, if its host differs from the repository's
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https?://[^@/?#\s]+([/?#]\S*)?$`
	// +kubebuilder:validation:XValidation:rule="isURL(self)",message="must be an http(s) URL"
	URL string `json:"url,omitempty"`
	// "owner/name" or "group/group/name", if not the repository of the commits
	// +kubebuilder:validation:Pattern=`^[^/]+(/[^/]+)+$`
	Repository string `json:"repository,omitempty"`
	TokenFrom  *Token `json:"tokenFrom,omitempty"`
	// a GitHub App, in place of a token
	App *App `json:"app,omitempty"`
	// what gets its own comment and status on a pull request; default: all Syncs together
	// +kubebuilder:default=Cluster
	Per Per `json:"per,omitempty"`
	// what gets its own pair of statuses on the commits that are applied: each Sync, on the commits that change something of it; or the
	// cluster, on every commit, as headgate/CLUSTER/activation and /drift, which name the worst Sync
	// +kubebuilder:default=Sync
	Contexts Contexts `json:"contexts,omitempty"`
}

// An App is an installation of a GitHub App. Without other credentials, Headgate also reads the repository with it.
//
// +kubebuilder:validation:XValidation:rule="has(self.privateKeyFrom)",message="is missing",fieldPath=".privateKeyFrom"
type App struct {
	// ID of the App
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740992
	ID int64 `json:"id"`
	// the number at the end of the URL of the installation's settings
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9007199254740992
	Installation   int64  `json:"installation"`
	PrivateKeyFrom *Token `json:"privateKeyFrom,omitempty"`
}

// ForkPreviews limits previews of pull requests from forks.
type ForkPreviews struct {
	// the only registries for a fork, such as ghcr.io, without credentials
	// +kubebuilder:validation:items:MaxLength=512
	// +kubebuilder:validation:items:Pattern=`^(localhost|[A-Za-z0-9][A-Za-z0-9.-]*\.[A-Za-z0-9.-]*[A-Za-z0-9]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}|[A-Za-z0-9][A-Za-z0-9.-]*\.[A-Za-z0-9.-]*[A-Za-z0-9]:[0-9]{1,5}|\[[0-9A-Fa-f:]+\](:[0-9]{1,5})?)$`
	Registries []string `json:"registries,omitempty"`
}

// PreviewTrust is the largest step of versions that needs no look, for one kind of packages. A kind that the list leaves out is not
// trusted.
type PreviewTrust struct {
	// the kind of the package
	// +kubebuilder:validation:Enum=Provider;Configuration;Function
	Kind string `json:"kind"`
	// the largest step: minor includes patch, and major includes both
	// +kubebuilder:validation:Enum=patch;minor;major
	Bump string `json:"bump"`
}

// A Package declares that a directory without a crossplane.yaml is a provider package.
type Package struct {
	// directory of the repository, from its root
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^([^/.][^/]*|\.([^/.][^/]*)?|\.\.[^/]+)(/([^/.][^/]*|\.([^/.][^/]*)?|\.\.[^/]+)?)*$`
	Path string `json:"path"`
	// name of the provider
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`
	// true if the definitions are inactive until a policy activates them; false if all are active
	SafeStart *bool `json:"safeStart"`
}

// Limits bounds what Headgate reads from a commit, and what kustomize may build from it.
type Limits struct {
	// maximum size of a file, and of a document with its aliases expanded: 16Mi by default
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0')) && quantity(self).compareTo(quantity('256Mi')) <= 0",message="must be a size such as 16Mi, at most 256Mi"
	FileSize Size `json:"fileSize,omitempty"`
	// maximum size of all files that Headgate reads: 1Gi
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="isQuantity(self) && quantity(self).isGreaterThan(quantity('0')) && quantity(self).compareTo(quantity('64Gi')) <= 0",message="must be a size such as 16Mi, at most 64Gi"
	TotalSize Size `json:"totalSize,omitempty"`
	// maximum number of documents in all files: 100000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	Documents int `json:"documents,omitempty"`
	// maximum nesting in a document: 200
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5000
	Depth int `json:"depth,omitempty"`

	// maximum number of mappings, lists and scalars in a document: 200000
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	Nodes int `json:"nodes,omitempty"`
	// maximum nodes of all documents being decoded: 8000000, and 1000000 for a fork
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000000
	TotalNodes int `json:"totalNodes,omitempty"`
}

// A Conversion configures how Headgate treats conversion webhooks, because no package contains their service.
//
// +kubebuilder:validation:XValidation:rule="self.strategy == 'Inject' || !has(self.service) && !has(self.caBundle) && !has(self.caFrom)",message="must be Inject if a service or a CA is given",fieldPath=".strategy"
// +kubebuilder:validation:XValidation:rule="self.strategy != 'Inject' || has(self.service)",message="is missing",fieldPath=".service"
// +kubebuilder:validation:XValidation:rule="self.strategy != 'Inject' || has(self.caBundle) != has(self.caFrom)",message="specify caBundle or caFrom, and not both"
type Conversion struct {
	// +kubebuilder:default=Safe
	Strategy ConversionStrategy `json:"strategy,omitempty"`
	Service  *Service           `json:"service,omitempty"`
	// certificates of the CA, in PEM
	CABundle string     `json:"caBundle,omitempty"`
	CAFrom   *SecretRef `json:"caFrom,omitempty"`
}

// A Service is the service of a conversion webhook.
type Service struct {
	// namespace of the service
	// +kubebuilder:validation:MinLength=1
	Namespace string `json:"namespace"`
	// name of the service; like Crossplane, the name of the package if left out
	Name string `json:"name,omitempty"`
	// port of the service; like Crossplane, 9443 if left out
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int64 `json:"port,omitempty"`
}

// An Ignore rule names fields that belong to another writer once the object exists. Headgate never writes them again
// and reports no drift of them.
type Ignore struct {
	Target Target `json:"target,omitzero"`
	// JSON pointers; * matches every key or index
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:items:Pattern=`^(/([^~/]|~[01])+)+$`
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.all(path, !(path in ['/apiVersion', '/kind', '/metadata', '/metadata/name', '/metadata/namespace']))",message="has a path that identifies the object; remove it"
	Paths []string `json:"paths"`
}

// A Target selects objects by regular expressions, which must match the whole value. An expression that is left out
// matches any value.
type Target struct {
	// a regular expression for the API group
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="'x'.matches(self) in [true, false]",message="must be a regular expression"
	Group string `json:"group,omitempty"`
	// a regular expression for the kind
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="'x'.matches(self) in [true, false]",message="must be a regular expression"
	Kind string `json:"kind,omitempty"`
	// a regular expression for the namespace
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="'x'.matches(self) in [true, false]",message="must be a regular expression"
	Namespace string `json:"namespace,omitempty"`
	// a regular expression for the name
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="'x'.matches(self) in [true, false]",message="must be a regular expression"
	Name string `json:"name,omitempty"`
}

// A GivenApproval is an approval as a person writes it: DIGEST up to NUMBER by USER at TIME.
//
// +kubebuilder:object:generate=false
type GivenApproval struct {
	Digest string
	UpTo   string // the number of definitions and custom resources that it covers; "" for none
	By     string // "" if it names no one
	At     string // "" if it names no time; an approval with another time is another approval
}

// Approvals returns the approvals in ApproveAnnotation.
func (s *Sync) Approvals() []GivenApproval { return ApprovalsIn(s.Annotations[ApproveAnnotation]) }

// ApprovalsIn returns the approvals in a text. Commas or spaces separate them.
func ApprovalsIn(text string) []GivenApproval {
	var all []GivenApproval
	for part := range strings.SplitSeq(text, ",") {
		var words *string // the words that follow 'up to', 'by' or 'at'
		for word := range strings.FieldsSeq(strings.ReplaceAll(part, " up to ", " up-to ")) {
			var last GivenApproval
			if len(all) > 0 {
				last = all[len(all)-1]
			}
			switch {
			case word == "up-to" && last.Digest != "" && last.UpTo == "":
				words = &all[len(all)-1].UpTo
			case word == "by" && last.Digest != "" && last.By == "":
				words = &all[len(all)-1].By
			case word == "at" && last.Digest != "" && last.At == "":
				words = &all[len(all)-1].At
			case words == nil || IsDigest(word):
				all, words = append(all, GivenApproval{Digest: word}), nil
			default:
				*words = strings.TrimSpace(*words + " " + word)
			}
		}
	}
	return all
}

// String returns the approval as a person writes it.
func (a GivenApproval) String() string {
	words := []string{a.Digest}
	for _, part := range []struct{ word, value string }{{"up to", a.UpTo}, {"by", a.By}, {"at", a.At}} {
		if part.value != "" {
			words = append(words, part.word, part.value)
		}
	}
	return strings.Join(words, " ")
}

// Number returns the number that UpTo holds.
func (a GivenApproval) Number() (int, error) {
	if a.UpTo == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(a.UpTo)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("'up to %s' needs a number, such as up to 12", a.UpTo)
	}
	return n, nil
}

// IsDigest reports whether a text has the form of a digest in a report.
func IsDigest(text string) bool { return digest.MatchString(text) }

var digest = regexp.MustCompile(`^[0-9a-f]{32}$`)

// IsRegistry reports whether a text is the host of a registry, in the form that images use: ghcr.io, or
// registry.example.org:5000.
func IsRegistry(text string) bool {
	return registry.MatchString(text) && (strings.ContainsAny(text, ".:") || text == "localhost")
}

var registry = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(:[0-9]{1,5})?$`)

// The types of the enumerations.
type (
	// CRDOwner is the tool that creates the CRDs of definitions. Auto is Crossplane if the cluster serves its API or
	// the commit installs it.
	// +kubebuilder:validation:Enum=Auto;Headgate;Crossplane
	CRDOwner string
	// Catalogue is where Headgate finds definitions: in the commit, or also in the cluster.
	// +kubebuilder:validation:Enum=Commit;Live
	Catalogue string
	// Others decides what Headgate does with objects that configure Flux or Argo CD, and with documents that SOPS encrypted.
	// +kubebuilder:validation:Enum=Skip;Refuse;Apply
	Others string
	// ConversionStrategy decides what Headgate does with conversion webhooks. Safe drops a webhook if that loses
	// nothing, and is an error otherwise.
	// +kubebuilder:validation:Enum=Safe;Inject;None
	ConversionStrategy string
	// ManagementPolicy limits what a sync may do. With Observable, Headgate only reads, and another tool applies.
	// +kubebuilder:validation:Enum=Default;Observable
	ManagementPolicy string
	// Adoption decides whether Headgate takes over existing objects. Adopt also takes them from Flux, Argo CD and
	// Helm, but never from Crossplane.
	// +kubebuilder:validation:Enum=AdoptIfUnowned;Refuse;Adopt
	Adoption string
	// AdoptionLeftovers decides what Headgate does with fields that only the previous applier of an adopted object
	// manages: keep or remove them.
	// +kubebuilder:validation:Enum=Keep;Remove
	AdoptionLeftovers string
	// Conflicts decides what Headgate does with fields of another field manager: refuse to write the object, or take the fields.
	// +kubebuilder:validation:Enum=Refuse;Take
	Conflicts string
	// Drift decides what Headgate does with changes to what it applied: correct them, or only report them.
	// +kubebuilder:validation:Enum=Correct;Report
	Drift string
	// Instances decides what Headgate does with managed resources, XRs and claims that left the commit. Pruning them
	// deletes cloud resources.
	// +kubebuilder:validation:Enum=Hold;Prune
	Instances string
	// Deactivation decides what Headgate does with active definitions that no policy names any more: keep them, or
	// deactivate unused ones.
	// +kubebuilder:validation:Enum=Never;WhenUnused
	Deactivation string
	// Trailers selected the commit messages whose approvals count.
	// +kubebuilder:validation:Enum=Never;Signed;Any
	Trailers string
	// VerifyMode selects what must be signed before Headgate applies a commit.
	// +kubebuilder:validation:Enum=Never;Head;Tag;TagAndHead
	VerifyMode string
	// History limits which commits may follow the last applied one.
	// +kubebuilder:validation:Enum=Any;FastForward
	History string
	// Per selects what gets its own comment and status on a pull request: each Sync, or all Syncs of a process that
	// post for one cluster.
	// +kubebuilder:validation:Enum=Cluster;Sync
	Per string
	// Contexts selects what gets its own pair of statuses on a commit: each Sync, or all Syncs of a process that post for one cluster.
	// +kubebuilder:validation:Enum=Sync;Cluster
	Contexts string
	// Forge is the kind of a forge.
	// +kubebuilder:validation:Enum=GitHub;GitLab;Gitea;Forgejo;Bitbucket;BitbucketDataCenter;AzureDevOps
	Forge string
)

// The values of the enumerations. The first of each type is the default.
const (
	OwnerAuto       CRDOwner = "Auto" // Crossplane if it is installed or the commit installs it, else Headgate
	OwnerHeadgate   CRDOwner = "Headgate"
	OwnerCrossplane CRDOwner = "Crossplane"

	CatalogueCommit Catalogue = "Commit"
	CatalogueLive   Catalogue = "Live" // also the cluster's definitions

	OthersSkip   Others = "Skip" // Headgate only counts them
	OthersRefuse Others = "Refuse"
	OthersApply  Others = "Apply" // as ordinary objects

	ConversionSafe   ConversionStrategy = "Safe" // dropped if that loses nothing, else an error
	ConversionInject ConversionStrategy = "Inject"
	ConversionNone   ConversionStrategy = "None"

	PerCluster Per = "Cluster"
	PerSync    Per = "Sync"

	ContextsSync    Contexts = "Sync"
	ContextsCluster Contexts = "Cluster"

	PolicyDefault    ManagementPolicy = "Default"
	PolicyObservable ManagementPolicy = "Observable" // Headgate only observes; another tool applies

	AdoptIfUnowned Adoption = "AdoptIfUnowned"
	AdoptRefuse    Adoption = "Refuse"
	AdoptAll       Adoption = "Adopt" // also from Flux, Argo CD, Helm and similar tools, but never from Crossplane

	LeftoversKeep   AdoptionLeftovers = "Keep"   // Headgate lists them, and a person may approve their removal
	LeftoversRemove AdoptionLeftovers = "Remove" // the pass after the adoption removes them

	ConflictsRefuse Conflicts = "Refuse" // Headgate does not write the object, and names the field managers
	ConflictsTake   Conflicts = "Take"

	DriftCorrect Drift = "Correct"
	DriftReport  Drift = "Report" // Headgate reports drift and does not write the object

	InstancesHold  Instances = "Hold"
	InstancesPrune Instances = "Prune" // the resources outside of the cluster are deleted, too

	TrailersNever  Trailers = "Never" // a Sync with another value gets a warning
	TrailersSigned Trailers = "Signed"
	TrailersAny    Trailers = "Any"

	VerifyNever      VerifyMode = "Never"
	VerifyHead       VerifyMode = "Head"       // the commit that ref resolves to
	VerifyTag        VerifyMode = "Tag"        // the annotated tag that ref names
	VerifyTagAndHead VerifyMode = "TagAndHead" // the commit and the tag

	HistoryAny         History = "Any"
	HistoryFastForward History = "FastForward" // only descendants of the last applied commit

	DeactivationNever      Deactivation = "Never"      // they stay active, as in Crossplane
	DeactivationWhenUnused Deactivation = "WhenUnused" // Headgate deactivates them once nothing uses them

	ForgeGitHub              Forge = "GitHub"
	ForgeGitLab              Forge = "GitLab"
	ForgeGitea               Forge = "Gitea"
	ForgeForgejo             Forge = "Forgejo"
	ForgeBitbucket           Forge = "Bitbucket" // Bitbucket Cloud
	ForgeBitbucketDataCenter Forge = "BitbucketDataCenter"
	ForgeAzureDevOps         Forge = "AzureDevOps"
)

// An Enumeration is a field of a Spec with a closed set of values. The first one is the default.
//
// +kubebuilder:object:generate=false
type Enumeration struct {
	Field  string // path of the field, such as "spec.crdOwner"
	Values []string
	// Writes reports whether the field only concerns writes. Such a field has no effect with PolicyObservable.
	Writes bool

	Value func() string
	Set   func(value string)
}

// Enumerations returns the enumerations of a Spec. Default and Validate apply to all of them. Package target maps
// each to a flag and to the setting behind it.
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
		enumeration("spec.source.verify.mode", &s.Source.Verify.Mode, VerifyNever, VerifyHead, VerifyTag, VerifyTagAndHead),
		enumeration("spec.source.history", &s.Source.History, HistoryAny, HistoryFastForward).ofWrites(),
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

// The defaults of the fields that are not enumerations.
const (
	DefaultNamespace    = "headgate-system"
	DefaultInterval     = time.Minute
	DefaultTimeout      = 5 * time.Minute
	DefaultFullCheck    = time.Hour
	DefaultFetchTimeout = 10 * time.Minute
	DefaultPasswordEnv  = "HEADGATE_GIT_PASSWORD" //nolint:gosec // the name of a variable
	DefaultUsernameEnv  = "HEADGATE_GIT_USERNAME"
	DefaultIdentityEnv  = "HEADGATE_GIT_IDENTITY"
	DefaultKnownEnv     = "HEADGATE_GIT_KNOWN_HOSTS"
	DefaultCAEnv        = "HEADGATE_GIT_CA"
	DefaultTokenEnv     = "HEADGATE_FORGE_TOKEN" //nolint:gosec // the name of a variable
	DefaultWebhookEnv   = "HEADGATE_WEBHOOK_SECRET"
	DefaultAppKeyEnv    = "HEADGATE_APP_KEY"
)

// Suspended describes the suspension of a sync: "suspended until 2026-01-31T12:00:00Z by alice: migration". It is "" for a sync that is not
// suspended.
func (s Spec) Suspended() string {
	if !s.Suspend {
		return ""
	}
	text, of := "suspended", s.Suspension
	if of == nil {
		return text
	}
	if of.Until != nil {
		text += " until " + of.Until.UTC().Format(time.RFC3339)
	}
	if of.By != "" {
		text += " by " + of.By
	}
	if of.Why != "" {
		text += ": " + of.Why
	}
	return text
}

// Default fills in the fields that a Sync leaves out.
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
		for _, v := range e.Values { // flags have the same words in lower case
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
		orDefault(&to.Per, PerCluster)
		orDefault(&to.Contexts, ContextsSync)
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
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// A Duration is a duration in the notation of Go: "1m30s".
type Duration string

// Duration returns the duration, or 0 for invalid text, which Validate refuses.
func (d Duration) Duration() time.Duration {
	v, err := time.ParseDuration(string(d))
	if err != nil {
		return 0
	}
	return v
}

// A Size is a quantity in the notation of Kubernetes: "16Mi".
type Size string

// Bytes returns the size in bytes, or 0 for invalid text, which Validate refuses.
func (s Size) Bytes() int64 {
	q, err := resource.ParseQuantity(string(s))
	if err != nil {
		return 0
	}
	return q.Value()
}
