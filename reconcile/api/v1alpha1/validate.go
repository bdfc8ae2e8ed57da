package v1alpha1

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"
	utilversion "k8s.io/apimachinery/pkg/util/version"
)

// Validate returns every mistake in a Sync whose defaults are filled in, each with the path of its field.
func (s *Sync) Validate() error { return errors.Join(s.problems()...) }

// problems returns every mistake that Validate finds.
func (s *Sync) problems() problems {
	var p problems
	if s.Name == "" {
		p.add("metadata.name", "is missing")
	} else if wrong := validation.IsDNS1123Subdomain(s.Name); len(wrong) > 0 {
		p.add("metadata.name", "%q is no name: %s", s.Name, brief(wrong[0]))
	}
	if wrong := validation.IsDNS1123Label(s.Namespace); len(wrong) > 0 {
		p.add("metadata.namespace", "%q is no namespace: %s", s.Namespace, brief(wrong[0]))
	}
	p.given(s.Approvals())
	return append(p, s.Spec.problems()...)
}

// problems returns every mistake in a Spec.
func (s *Spec) problems() problems {
	var p problems
	spec := *s
	p.source(spec.Source)
	p.suspension(spec)
	p.statuses(spec)
	p.previews(spec)
	p.durations(spec)

	for _, e := range spec.Enumerations() {
		word(&p, e.Field, e.Value(), e.Values...)
	}
	p.observeOnly(spec)
	p.release(spec.CrossplaneVersion)
	p.kubernetes(spec.KubernetesVersion)
	p.packages(spec.Packages)
	for i, name := range spec.Schemas {
		p.below(fmt.Sprintf("spec.schemas[%d]", i), name)
	}
	p.sizes("spec.limits.", spec.Limits)
	p.conversion(spec.Conversion)
	p.healthChecks(spec.HealthCheckExprs)
	for i, rule := range spec.Ignore {
		p.ignore(fmt.Sprintf("spec.ignore[%d].", i), rule)
	}
	p.approvals(spec.Approvals)
	p.releases(spec.Release)
	p.allowedKinds(spec.AllowedKinds)
	p.patterns("spec.references.namespaces", spec.References.Namespaces)
	p.activation(spec.Activation)
	p.numbers(spec.Numbers())
	return p
}

// given checks the approvals of a file.
func (p *problems) given(all []GivenApproval) {
	for _, a := range all {
		if !IsDigest(a.Digest) {
			p.add("metadata.annotations["+ApproveAnnotation+"]", "%q is not a digest from a report, which has 32 hexadecimal digits", a.Digest)
		}
		if _, err := a.Number(); err != nil {
			p.add("metadata.annotations["+ApproveAnnotation+"]", "%s", err)
		}
		if _, err := time.Parse(time.RFC3339, a.At); a.At != "" && err != nil {
			p.add("metadata.annotations["+ApproveAnnotation+"]", "%q is not a time such as 2026-01-31T12:00:00Z", a.At)
		}
	}
}

// ValidateObject returns every mistake in a Sync object whose defaults are filled in: those of Validate, and what only a file may name.
// A Sync object names no file and no environment variable, because those of the controller are not for the writers of Syncs. A malformed
// approval is no mistake in an object: it approves nothing, and the passes go on.
func (s *Sync) ValidateObject() error {
	p := s.Spec.problems()
	source := s.Spec.Source
	if repo := source.Repo; repo != "" && !strings.HasPrefix(repo, "https://") && !strings.HasPrefix(repo, "http://") && !source.OverSSH() {
		p.add("spec.source.repo", "must be an https or ssh URL, because a Sync object cannot name a directory of the controller")
	}
	if source.OverSSH() && (source.CredentialsFrom == nil || source.CredentialsFrom.SecretRef == nil) {
		p.add("spec.source.credentialsFrom", "must name a Secret with identity and known_hosts in secretRef, because the repository is read over ssh")
	}
	if from := source.CredentialsFrom; from != nil && from.Env != nil {
		p.add("spec.source.credentialsFrom.env", notForObjects)
	}
	for _, t := range s.Spec.tokens() {
		if t.from != nil && t.from.SecretRef == nil {
			p.add(t.field, notForObjects)
		}
	}
	if a := s.Spec.Approvals; a.Trailers != TrailersNever || len(a.Signers) > 0 {
		p.add("spec.approvals", "approvals in commit messages do not count; leave trailers and signers out")
	}
	p.life(s)
	return errors.Join(p...)
}

// life checks the fields that only Sync objects have.
func (p *problems) life(s *Sync) {
	spec := s.Spec
	if name := spec.ServiceAccountName; name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
		p.add("spec.serviceAccountName", "%q is no name of a service account", name)
	}
	if of := spec.KubeConfig; of != nil {
		p.secretRef("spec.kubeConfig.secretRef", &of.SecretRef)
	}
	word(p, "spec.deletionPolicy", spec.DeletionPolicy, "", DeletionOrphan, DeletionDelete)
	named := map[string]bool{}
	for i, d := range spec.DependsOn {
		field := fmt.Sprintf("spec.dependsOn[%d].", i)
		switch {
		case len(validation.IsDNS1123Subdomain(d.Name)) > 0:
			p.add(field+"name", "%q is no name of a Sync", d.Name)
		case d.Name == s.Name:
			p.add(field+"name", "a Sync cannot depend on itself")
		case named[d.Name]:
			p.add(field+"name", "%q is listed twice", d.Name)
		}
		named[d.Name] = true
		word(p, field+"until", d.Until, "", UntilApplied, UntilReady)
	}
}

// ValidateFile returns every mistake in a Sync of a file whose defaults are filled in: those of Validate, and what only a Sync object
// may have.
func (s *Sync) ValidateFile() error {
	p := s.problems()
	for _, of := range []struct {
		field string
		set   bool
	}{
		{"spec.serviceAccountName", s.Spec.ServiceAccountName != ""},
		{"spec.source.sourceRef", s.Spec.Source.SourceRef != nil},
		{"spec.kubeConfig", s.Spec.KubeConfig != nil},
		{"spec.dependsOn", len(s.Spec.DependsOn) > 0},
		{"spec.deletionPolicy", s.Spec.DeletionPolicy != ""},
	} {
		if of.set {
			p.add(of.field, "only a Sync object has it, which 'headgate controller' runs; leave it out of the file")
		}
	}
	return errors.Join(p...)
}

var (
	apiVersions = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?v[a-z0-9]+$`)
	kinds       = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)
	// ownHealth are the groups whose kinds decide the order of passes, so no expression decides when they are ready.
	ownHealth = []string{"apiextensions.k8s.io", "apiextensions.crossplane.io", "pkg.crossplane.io"}
)

// healthChecks checks all of health checks except the grammar of their expressions.
func (p *problems) healthChecks(all []HealthCheck) {
	if len(all) > 50 {
		p.add("spec.healthCheckExprs", "has %d checks; at most 50 are supported", len(all))
	}
	first := map[string]int{}
	for i, c := range all {
		field := fmt.Sprintf("spec.healthCheckExprs[%d].", i)
		group, _, _ := strings.Cut(c.APIVersion, "/")
		switch {
		case !apiVersions.MatchString(c.APIVersion):
			p.add(field+"apiVersion", "%q is no API version, such as cert-manager.io/v1", c.APIVersion)
		case slices.Contains(ownHealth, group):
			p.add(field+"apiVersion", "Headgate itself decides when CRDs, definitions, policies and packages are ready; leave it out")
		}
		if c.Kind != "" && !kinds.MatchString(c.Kind) {
			p.add(field+"kind", "%q is no kind", c.Kind)
		}
		if at, twice := first[group+" "+c.Kind]; twice {
			p.add(field+"kind", "repeats spec.healthCheckExprs[%d]", at)
		}
		first[group+" "+c.Kind] = i
		if c.Current == "" {
			p.add(field+"current", "is missing: the expression that is true for an object that is ready")
		}
		for _, e := range []struct{ name, text string }{{"current", c.Current}, {"inProgress", c.InProgress}, {"failed", c.Failed}} {
			if utf8.RuneCountInString(e.text) > 2048 {
				p.add(field+e.name, "must be at most 2048 characters")
			}
		}
	}
}

// suspension checks that a suspension belongs to a suspended sync, and is short.
func (p *problems) suspension(s Spec) {
	of := s.Suspension
	switch {
	case of == nil:
	case !s.Suspend:
		p.add("spec.suspension", "has no effect without suspend: true")
	case utf8.RuneCountInString(of.Why) > 256:
		p.add("spec.suspension.why", "must be at most 256 characters")
	case utf8.RuneCountInString(of.By) > 253:
		p.add("spec.suspension.by", "must be at most 253 characters")
	}
}

const notForObjects = "a Sync object reads it from a Secret, because the environment of the controller is not for Syncs: name it in secretRef"

// A tokenField is a field of a Spec that selects a token.
type tokenField struct {
	field string
	from  *Token
}

func (s *Spec) tokens() []tokenField {
	var all []tokenField
	if s.Source.Webhook != nil {
		all = append(all, tokenField{"spec.source.webhook.secretFrom", s.Source.Webhook.SecretFrom})
	}
	if s.Statuses == nil {
		return all
	}
	all = append(all, tokenField{"spec.statuses.tokenFrom", s.Statuses.TokenFrom})
	if s.Statuses.App != nil {
		all = append(all, tokenField{"spec.statuses.app.privateKeyFrom", s.Statuses.App.PrivateKeyFrom})
	}
	return all
}

// objectID matches the identity of an object in a report: Kind.group/namespace/name, without empty parts.
var objectID = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*(\.[a-z0-9]([a-z0-9.-]*[a-z0-9])?)?(/[a-z0-9]([a-z0-9-]*[a-z0-9])?)?/[^/\s]+$`)

// releases checks identities of objects.
func (p *problems) releases(listed []string) {
	at := map[string]int{}
	for i, id := range listed {
		field := fmt.Sprintf("spec.release[%d]", i)
		first, twice := at[id]
		at[id] = i
		switch {
		case twice:
			p.add(field, "repeats spec.release[%d]", first)
		case objectID.MatchString(id):
		case meantID(id) != "":
			p.add(field, "%q is not the identity of an object; write %s", id, meantID(id))
		default:
			p.add(field, "%q is not the identity of an object; write KIND/NAMESPACE/NAME, or KIND.GROUP/NAMESPACE/NAME, as 'headgate status --full' does: ConfigMap/team/settings", id)
		}
	}
}

// withVersion matches the notation of other tools for objects: apps/v1/Deployment/team/web.
var withVersion = regexp.MustCompile(`^(?:([a-z0-9.-]+)/)?v[0-9]+(?:(?:alpha|beta)[0-9]+)?/([A-Z][A-Za-z0-9]*)/(.+)$`)

// meantID returns the identity that a text probably means, or "".
func meantID(text string) string {
	meant := strings.TrimSpace(text)
	if m := withVersion.FindStringSubmatch(meant); m != nil {
		meant = strings.TrimSuffix(m[2]+"."+m[1], ".") + "/" + m[3]
	}
	if !objectID.MatchString(meant) {
		return ""
	}
	return meant
}

// userName matches the user names that forges allow.
var userName = regexp.MustCompile(`^@?[A-Za-z0-9{][A-Za-z0-9._@:+\\{}-]{0,254}$`)

// approvals checks whose approvals count.
func (p *problems) approvals(a Approvals) {
	for _, of := range []struct {
		field, value string
		values       []string
	}{{"comments", a.Comments, []string{CommentsCount, CommentsNever}}, {"byAuthor", a.ByAuthor, []string{ByAuthorRefuse, ByAuthorAllow}}} {
		if of.value != "" && !slices.Contains(of.values, of.value) {
			p.add("spec.approvals."+of.field, fmt.Sprintf("%q is not one of %s", of.value, strings.Join(of.values, ", ")))
		}
	}
	if a.Comments == CommentsNever && (a.Reviews || a.ByAuthor == ByAuthorAllow || len(a.Approvers) > 0) {
		p.add("spec.approvals.comments", "is Never, so reviews, byAuthor and approvers have no effect: remove them")
	}
	if a.Approvers != nil && len(a.Approvers) == 0 {
		p.add("spec.approvals.approvers", "is empty: list who may approve, or leave it out to allow everyone who may write")
	}
	for i, name := range a.Targets {
		if name == "" || strings.ContainsAny(name, " \t\n~^:?*[\\") || strings.HasPrefix(name, "refs/") {
			p.add(fmt.Sprintf("spec.approvals.targets[%d]", i), fmt.Sprintf("%q is not the name of a branch", name))
		}
	}
	for i, name := range a.Approvers {
		if !userName.MatchString(name) {
			p.add(fmt.Sprintf("spec.approvals.approvers[%d]", i), fmt.Sprintf("%q is not a user name of a forge", name))
		}
	}
}

// allowedKinds checks the entries of a list that is set.
func (p *problems) allowedKinds(listed []AllowedKind) {
	const field = "spec.allowedKinds"
	if listed != nil && len(listed) == 0 {
		p.add(field, "is empty: list what this sync may apply, or leave it out to allow every kind")
	}
	for i, k := range listed {
		at := fmt.Sprintf("%s[%d].", field, i)
		if k.Kind == "" {
			p.add(at+"kind", "is missing; write * for every kind of the group")
		}
		if group, version, ok := strings.Cut(k.Group, "/"); ok {
			p.add(at+"group", "must be a group without the version %s; write %q", version, group)
		} else {
			p.pattern(at+"group", k.Group)
		}
		if strings.ContainsAny(k.Kind, "./") {
			p.add(at+"kind", "must be a kind without its group, not %q", k.Kind)
		} else {
			p.pattern(at+"kind", k.Kind)
		}
		if k.Scope != "" {
			word(p, at+"scope", k.Scope, ScopeNamespaced, ScopeCluster)
		}
		if k.Scope == ScopeCluster && len(k.Namespaces) > 0 {
			p.add(at+"namespaces", "has no effect with scope: %s; leave one of them out", ScopeCluster)
		}
		p.patterns(at+"namespaces", k.Namespaces)
		p.patterns(at+"names", k.Names)
	}
}

func (p *problems) activation(a *Activation) {
	if a == nil {
		return
	}
	for i, glob := range a.Allow {
		if at := fmt.Sprintf("spec.activation.allow[%d]", i); strings.ContainsAny(glob, "/ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			p.add(at, "%q matches no definition: names are lower case, such as buckets.s3.aws.m.upbound.io", glob)
		}
	}
	p.patterns("spec.activation.allow", a.Allow)
}

// patterns checks a list of patterns. A list without entries would match nothing.
func (p *problems) patterns(field string, all []string) {
	if all != nil && len(all) == 0 && field != "spec.activation.allow" {
		p.add(field, "is empty; leave it out to allow all")
	}
	for i, glob := range all {
		at := fmt.Sprintf("%s[%d]", field, i)
		if glob == "" {
			p.add(at, "is empty")
		}
		p.pattern(at, glob)
	}
}

func (p *problems) pattern(field, glob string) {
	if _, err := path.Match(glob, ""); err != nil {
		p.add(field, "%q is no pattern: close the [, and let a character follow the \\", glob)
	}
}

// brief drops examples and regular expressions from an error text of Kubernetes.
func brief(rule string) string {
	text, _, _ := strings.Cut(rule, " (e.g.")
	return text
}

// problems holds the mistakes in the order in which they were found.
type problems []error

func (p *problems) add(field, format string, args ...any) {
	*p = append(*p, fmt.Errorf(field+": "+format, args...))
}

func word[T ~string](p *problems, field string, value T, of ...T) {
	if slices.Contains(of, value) {
		return
	}
	p.add(field, "must be %s, not %q", Either(of), value)
}

// Either returns values as a list in a sentence: "A, B or C".
func Either[T ~string](values []T) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = string(v)
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// observeOnly refuses fields that have no effect on an observe-only Sync, because the user may rely on them.
func (p *problems) observeOnly(spec Spec) {
	if spec.ManagementPolicy != PolicyObservable {
		return
	}
	useless := func(field string) {
		p.add(field, "has no effect with managementPolicy %s; leave it out", PolicyObservable)
	}
	for _, e := range spec.Enumerations() {
		if e.Writes && e.Value() != e.Values[0] {
			useless(e.Field)
		}
	}
	for _, n := range spec.Numbers() {
		if n.Writes && n.Set {
			useless(n.Field)
		}
	}
	if len(spec.Release) > 0 {
		useless("spec.release")
	}
	if spec.AllowedKinds != nil {
		useless("spec.allowedKinds")
	}
	if spec.Activation != nil {
		useless("spec.activation")
	}
	if spec.References.FromSecrets != nil {
		useless("spec.references.fromSecrets")
	}
	if spec.References.Namespaces != nil {
		useless("spec.references.namespaces")
	}
}

func (p *problems) source(s Source) {
	const field = "spec.source."
	u, err := url.Parse(s.Repo)
	remote := strings.Contains(s.Repo, "://")
	switch {
	case s.SourceRef != nil:
		p.sourceRef(s)
	case s.Repo == "":
		p.add(field+"repo", "is missing")
	case SSHURL(s.Repo) != "":
		p.add(field+"repo", "is in the short form of ssh; write %s", SSHURL(s.Repo))
	case remote && err != nil: // the text of err quotes the whole address
		p.add(field+"repo", "is no URL")
	case s.OverSSH():
		p.ssh(s, u)
	case remote && u.User != nil:
		p.add(field+"repo", "holds credentials; put them into the environment and name the variables in %scredentialsFrom.env", field)
	}
	if s.Path != "" {
		p.below(field+"path", s.Path)
	}
	if strings.HasPrefix(s.Ref, "semver:") && !versionRange.MatchString(s.Ref) {
		p.add(field+"ref", "must be a range of versions after semver:, such as semver:>=1.2.0 <2")
	}
	if of := s.ProxySecretRef; of != nil {
		p.secretRef(field+"proxySecretRef", of)
		if !strings.HasPrefix(s.Repo, "http") || of.Key != "" {
			p.add(field+"proxySecretRef", "needs an https repository, and no key")
		}
	}
	p.verify(s)
	if s.Webhook != nil {
		p.token(field+"webhook.secretFrom", s.Webhook.SecretFrom)
	}
	if from := s.CredentialsFrom; from != nil {
		p.secretRef(field+"credentialsFrom.secretRef", from.SecretRef)
		switch {
		case from.Anonymous && (from.Env != nil || from.SecretRef != nil):
			p.add(field+"credentialsFrom", "has anonymous and credentials; remove one of them")
		case from.Anonymous:
		case from.Env == nil && from.SecretRef == nil:
			p.add(field+"credentialsFrom", "is empty; specify env, secretRef or anonymous")
		case from.Env != nil && from.SecretRef != nil:
			p.add(field+"credentialsFrom", "has env and secretRef; remove one of them")
		case from.Env != nil:
			p.variables(*from.Env, s.OverSSH())
		}
	}
}

// variables checks the names of the variables that the kind of the repository needs, and of the others that are set.
func (p *problems) variables(env EnvCredentials, ssh bool) {
	for _, v := range []struct {
		field, name string
		needed      bool
	}{{"username", env.Username, false}, {"password", env.Password, !ssh}, {"identity", env.Identity, ssh}, {"knownHosts", env.KnownHosts, ssh}, {"ca", env.CA, false}} {
		if v.name != "" || v.needed {
			p.variable("spec.source.credentialsFrom.env."+v.field, v.name)
		}
	}
}

// OverSSH reports whether the repository is read over ssh.
func (s Source) OverSSH() bool { return strings.HasPrefix(s.Repo, "ssh://") }

// ssh checks the URL of a repository on an ssh server.
func (p *problems) ssh(s Source, u *url.URL) {
	const field = "spec.source."
	_, secret := u.User.Password()
	switch {
	case secret:
		p.add(field+"repo", "holds a password, which ssh does not use; leave it out")
	case u.Hostname() == "" || strings.Trim(u.Path, "/") == "":
		p.add(field+"repo", "must name a host and a repository, as ssh://git@example.org/team/platform.git does")
	case strings.HasPrefix(u.Hostname(), "-") || strings.HasPrefix(u.User.Username(), "-"):
		p.add(field+"repo", "must not begin with an option")
	case u.RawQuery != "" || u.Fragment != "":
		p.add(field+"repo", "must have no query and no fragment")
	}
	if s.CredentialsFrom != nil && s.CredentialsFrom.Anonymous {
		p.add(field+"credentialsFrom.anonymous", "has no effect over ssh, which needs a key; name a Secret with identity and known_hosts in secretRef")
	}
}

// sourceRef checks a reference to a source of Flux, and that nothing beside it is without effect.
func (p *problems) sourceRef(s Source) {
	const field = "spec.source.sourceRef"
	ref := *s.SourceRef
	if SourceKinds[ref.Kind] == "" {
		p.add(field+".kind", "must be GitRepository, OCIRepository or ExternalArtifact, not %q", ref.Kind)
	}
	if len(validation.IsDNS1123Subdomain(ref.Name)) > 0 {
		p.add(field+".name", "%q is no name of a source", ref.Name)
	}
	if ref.Namespace != "" && len(validation.IsDNS1123Label(ref.Namespace)) > 0 {
		p.add(field+".namespace", "%q is no namespace", ref.Namespace)
	}
	if s.Repo != "" {
		p.add(field, "excludes repo")
	}
	if s.Ref != "" || s.CredentialsFrom != nil || s.Webhook != nil || s.Verify.Mode != VerifyNever || s.History != HistoryAny {
		p.add(field, "excludes ref, credentialsFrom, webhook, verify and history: the source of Flux has its own")
	}
}

// versionRange matches the characters of a range of versions. Package git reads the range.
var versionRange = regexp.MustCompile(`^semver:[-0-9A-Za-z.<>=~^|,*+! ]{1,200}$`)

// fullCommit matches the full ID of a commit.
var fullCommit = regexp.MustCompile(`^[0-9a-fA-F]{40}$`)

// verify checks that keys are set if signatures are required, and that ref may name a tag if the mode needs one.
func (p *problems) verify(s Source) {
	const field = "spec.source.verify."
	v := s.Verify
	p.secretRef(field+"keysFrom", v.KeysFrom)
	has := len(v.Keys) > 0 || v.KeysFrom != nil
	switch never := v.Mode == VerifyNever; {
	case never && has:
		p.add(field+"mode", "is missing, so the keys have no effect; set %s", Either([]VerifyMode{VerifyHead, VerifyTag, VerifyTagAndHead}))
	case !never && !has:
		p.add(field+"keys", "is missing: list public keys, one of which must have signed, or name their Secret in keysFrom")
	}
	branch := strings.HasPrefix(s.Ref, "refs/") && !strings.HasPrefix(s.Ref, "refs/tags/")
	if (v.Mode == VerifyTag || v.Mode == VerifyTagAndHead) && (s.Ref == "" || branch || fullCommit.MatchString(s.Ref)) {
		p.add("spec.source.ref", "must name a tag if verify.mode is %s", v.Mode)
	}
}

// SSHURL returns the URL of a repository whose address has the short form of ssh, such as git@example.org:team/platform.git, or "" for
// any other address.
func SSHURL(repo string) string {
	m := scpLike.FindStringSubmatch(repo)
	if m == nil {
		return ""
	}
	return "ssh://" + m[1] + "/" + strings.TrimPrefix(m[2], "/")
}

// scpLike matches an address in the notation of scp and Git: user@host:path.
var scpLike = regexp.MustCompile(`^([A-Za-z0-9._-]+@[A-Za-z0-9.-]+):([^:@]+)$`)

func (p *problems) statuses(spec Spec) {
	p.url("spec.pageURL", spec.PageURL)
	if spec.ClusterName != "" && !clusterName.MatchString(spec.ClusterName) {
		p.add("spec.clusterName", "must be letters, digits, '-', '_' and '.', at most 63, not %q", spec.ClusterName)
	}
	s := spec.Statuses
	if s == nil {
		if spec.PageURL != "" {
			p.add("spec.pageURL", "has no effect without spec.statuses, which link to it")
		}
		return
	}
	if spec.ClusterName == "" {
		p.add("spec.clusterName", "is missing: statuses need it to tell clusters apart that post to the same commit")
	}
	if spec.Source.SourceRef != nil && (s.URL == "" || s.Repository == "") {
		p.add("spec.statuses", "needs url and repository beside sourceRef")
	}
	if s.Forge != "" {
		word(p, "spec.statuses.forge", s.Forge, Forges...)
	}
	word(p, "spec.statuses.per", s.Per, PerCluster, PerSync)
	word(p, "spec.statuses.contexts", s.Contexts, ContextsSync, ContextsCluster)
	p.url("spec.statuses.url", s.URL)
	if path := strings.Split(s.Repository, "/"); s.Repository != "" && (len(path) < 2 || slices.Contains(path, "")) {
		p.add("spec.statuses.repository", "must be owner/name, or group/group/name, not %q", s.Repository)
	}
	p.token("spec.statuses.tokenFrom", s.TokenFrom)
	if s.App == nil {
		return
	}
	p.token("spec.statuses.app.privateKeyFrom", s.App.PrivateKeyFrom)
	switch {
	case s.TokenFrom != nil:
		p.add("spec.statuses", "has tokenFrom and app; remove one of them")
	case s.Forge != "" && !slices.Contains(forgesWithApps, s.Forge):
		p.add("spec.statuses.app", "needs forge: %s, not %s", forgesWithApps[0], s.Forge)
	case s.App.ID == 0 || s.App.Installation == 0:
		p.add("spec.statuses.app", "needs id and installation: the numbers in the settings of the app and in the URL of its installation")
	}
}

func (p *problems) previews(spec Spec) {
	switch {
	case !spec.Previews && spec.LivePreviews:
		p.add("spec.livePreviews", "has no effect without previews: true")
	case !spec.Previews && spec.ForkPreviews != nil:
		p.add("spec.forkPreviews", "has no effect without previews: true")
	case spec.Previews && spec.Source.SourceRef != nil:
		p.add("spec.previews", "needs source.repo: an artifact of Flux has no pull requests")
	case spec.Previews && spec.Statuses == nil:
		p.add("spec.previews", "needs spec.statuses, which names the forge of the pull requests and its token")
	}
	p.registries("spec.previewRegistries", spec.PreviewRegistries)
	if spec.ForkPreviews != nil {
		p.registries("spec.forkPreviews.registries", spec.ForkPreviews.Registries)
	}
	listed := map[string]bool{}
	for i, t := range spec.PreviewTrust {
		at := fmt.Sprintf("spec.previewTrust[%d].", i)
		word(p, at+"kind", t.Kind, "Provider", "Configuration", "Function")
		word(p, at+"bump", t.Bump, "patch", "minor", "major")
		if listed[t.Kind] {
			p.add(at+"kind", "%q is listed twice", t.Kind)
		}
		listed[t.Kind] = true
	}
}

func (p *problems) registries(field string, hosts []string) {
	for i, r := range hosts {
		if !IsRegistry(r) {
			p.add(fmt.Sprintf("%s[%d]", field, i), "must be the host of a registry, such as ghcr.io or registry.example.org:5000, not %q", r)
		}
	}
}

func (p *problems) token(field string, t *Token) {
	if t == nil {
		return
	}
	p.secretRef(field+".secretRef", t.SecretRef)
	switch {
	case t.SecretRef == nil:
		p.variable(field+".env", t.Env)
	case t.Env != "":
		p.add(field, "has env and secretRef; remove one of them")
	}
}

// IsClusterName reports whether a text can name a cluster in statuses.
func IsClusterName(s string) bool { return clusterName.MatchString(s) }

var (
	clusterName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)
	variable    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (p *problems) url(field, raw string) {
	if raw == "" {
		return
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		p.add(field, "must be an http(s) URL")
	case u.User != nil:
		p.add(field, "holds credentials; leave them out")
	}
}

// variable checks the name of an environment variable. It does not quote a wrong value, which may be the secret itself.
func (p *problems) variable(field, name string) {
	switch {
	case name == "":
		p.add(field, "is missing: the name of an environment variable")
	case !variable.MatchString(name):
		p.add(field, "is not the name of an environment variable; a secret does not belong here")
	}
}

// secretRef checks a reference to a Secret. It does not quote a wrong value, which may be the secret itself.
func (p *problems) secretRef(field string, ref *SecretRef) {
	if ref == nil {
		return
	}
	switch {
	case ref.Name == "":
		p.add(field+".name", "is missing: the name of a Secret in the namespace of the Sync")
	case len(validation.IsDNS1123Subdomain(ref.Name)) > 0:
		p.add(field+".name", "is not the name of a Secret; a secret does not belong here")
	}
	if ref.Key != "" && len(validation.IsConfigMapKey(ref.Key)) > 0 {
		p.add(field+".key", "is not the key of a Secret; a secret does not belong here")
	}
}

func (p *problems) release(release string) {
	if release == "" {
		return
	}
	if v, err := utilversion.ParseSemantic(release); err != nil || v.Major() < 2 || strings.ContainsAny(release, " \t\n") {
		p.add("spec.crossplaneVersion", "must be a complete version from v2.0.0 on, such as v2.3.1, not %q", release)
	}
}

// kubernetesReleases are the releases that Headgate can compare.
var kubernetesReleases = regexp.MustCompile(`^v?1\.[1-9][0-9]{0,2}(\.[0-9]+)?([+-].*)?$`)

func (p *problems) kubernetes(release string) {
	if release != "" && !kubernetesReleases.MatchString(release) {
		p.add("spec.kubernetesVersion", "must be a release of Kubernetes, such as 1.34, not %q", release)
	}
}

func (p *problems) packages(declared []Package) {
	at, named := map[string]int{}, map[string]int{}
	for i, d := range declared {
		field := fmt.Sprintf("spec.packages[%d].", i)
		p.below(field+"path", d.Path)
		if wrong := validation.IsDNS1123Subdomain(d.Name); len(wrong) > 0 {
			p.add(field+"name", "%q is not the name of a package: %s", d.Name, brief(wrong[0]))
		}
		if d.SafeStart == nil {
			p.add(field+"safeStart", "is missing: true if the provider declares the capability safe-start, false if all its definitions are active")
		}
		if first, twice := at[path.Clean(d.Path)]; twice {
			p.add(field+"path", "repeats spec.packages[%d]", first)
		}
		if first, twice := named[d.Name]; twice {
			p.add(field+"name", "repeats spec.packages[%d]", first)
		}
		at[path.Clean(d.Path)], named[d.Name] = i, i
	}
}

// below checks that a directory is inside of the repository: it is relative, and no part of it is "..".
func (p *problems) below(field, dir string) {
	if dir == "" || path.IsAbs(dir) || slices.Contains(strings.Split(dir, "/"), "..") {
		p.add(field, "must be a directory of the repository, relative to its root, not %q", dir)
	}
}

func (p *problems) ignore(field string, rule Ignore) {
	t := rule.Target
	for _, f := range []struct{ name, pattern string }{{"group", t.Group}, {"kind", t.Kind}, {"namespace", t.Namespace}, {"name", t.Name}} {
		if _, err := regexp.Compile(f.pattern); err != nil {
			p.add(field+"target."+f.name, "is not a regular expression: %v", err)
		}
	}
	if len(rule.Paths) == 0 {
		p.add(field+"paths", "is missing: list the fields to ignore, such as /spec/replicas")
	}
	for i, path := range rule.Paths {
		at := fmt.Sprintf("%spaths[%d]", field, i)
		switch {
		case !pointer.MatchString(path):
			p.add(at, "must be a JSON pointer such as /spec/replicas, in which ~0 is ~ and ~1 is /, not %q", path)
		case slices.Contains(identity, path):
			p.add(at, "%s identifies the object; remove this path", path)
		}
	}
}

var (
	pointer  = regexp.MustCompile(`^(/([^~/]|~[01])+)+$`)
	identity = []string{"/apiVersion", "/kind", "/metadata", "/metadata/name", "/metadata/namespace"}
)

func (p *problems) conversion(c Conversion) {
	const field = "spec.conversion."
	p.secretRef(field+"caFrom", c.CAFrom)
	if c.Strategy != ConversionInject {
		if c.Service != nil || c.CABundle != "" || c.CAFrom != nil {
			p.add(field+"strategy", "must be %s if a service or a CA is given, not %s", ConversionInject, c.Strategy)
		}
		return
	}
	if c.Service == nil || c.Service.Namespace == "" {
		p.add(field+"service.namespace", "is missing")
	}
	switch {
	case c.CABundle == "" && c.CAFrom == nil:
		p.add(field+"caBundle", "is missing; specify caBundle or caFrom")
	case c.CABundle != "" && c.CAFrom != nil:
		p.add(field+"caFrom", "differs from caBundle; remove one of them")
	}
}
