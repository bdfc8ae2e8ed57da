// Package target connects a Sync with the packages that carry it out. options.go maps its values to flags and to the core, wire.go
// makes passes for verbs, loops and previews, and New makes a Loop that posts statuses. Besides cmd, it is the only package that
// names adapters.
//
//	Sync, source, Surroundings ─Wire─► Reconciler ─New─► Target ─Run─► a Loop that runs
//	                                   git, cluster, registry, forge, outbox
package target

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile"
	"headgate.dev/headgate/reconcile/api/v1alpha1"
	"headgate.dev/headgate/reconcile/artifact"
	"headgate.dev/headgate/reconcile/cluster"
	"headgate.dev/headgate/reconcile/engine"
	"headgate.dev/headgate/reconcile/forge"
	"headgate.dev/headgate/reconcile/git"
	"headgate.dev/headgate/reconcile/inventory"
	"headgate.dev/headgate/reconcile/outbox"
	"headgate.dev/headgate/reconcile/report"

	"k8s.io/client-go/rest"
)

// A Target is a Sync with everything that carries it out.
type Target struct {
	Loop reconcile.Loop

	repository *git.Repository    // that the Sync names; without one, nothing is read from it
	artifact   *artifact.Archives // in its place; nil if the Sync names a repository
	wired      *Wired
	outbox     poster    // nil if nothing is posted
	leave      func()    // the board of the cluster
	follower   *follower // nil if no pull requests are previewed
	previews   bool      // it makes no passes
	approved   engine.Signal
	subscriber func() (*forge.Subscriber, error)
	hooks      *forge.Webhooks   // that the Sync joins while it runs; nil if the process does that
	hears      *forge.Subscriber // of hooks; nil if the Sync has no webhook
}

// A poster publishes the reports of a Sync, and posts later what the forge does not accept now.
type poster interface {
	reconcile.Publisher
	Waiting() int
	Start(ctx context.Context, by *engine.Queue) (wait func())
}

// freshTags is how long a loop uses the image that it has resolved a package's tag to. By default, Crossplane resolves a tag once.
const freshTags = 10 * time.Minute

// New wires a valid Sync. It sends no request. Its errors name fields of the Sync.
func New(s v1alpha1.Sync, in Surroundings) (_ *Target, err error) {
	if in.Getenv == nil {
		in.Getenv = os.Getenv
	}
	repository := &git.Repository{
		URL: s.Spec.Source.Repo, Path: s.Spec.Source.Path, Cache: in.Cache, Budget: in.Budget, Plain: in.Plain,
		Limits: git.Limits{Time: s.Spec.Source.FetchTimeout.Duration(), Object: objectsOf(s)},
		Shared: in.Clones,
	}
	source, tip := reconcile.Source(repository), repository.Tip
	ofFlux, err := artifactOf(s, in)
	if err != nil {
		return nil, err
	}
	if ofFlux != nil {
		source, tip = ofFlux, ofFlux.Tip
	}
	w, err := Wire(s, source, in, How{
		Cluster: cluster.Options{Progress: in.Done, Shares: in.Shares, Term: in.Term}, Fresh: freshTags, Compares: in.onlyPreviews(),
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = w.Close() // another Sync may get its place
		}
	}()
	t := &Target{repository: repository, artifact: ofFlux, wired: w, previews: in.onlyPreviews(), Loop: reconcile.Loop{
		Reconciler: w.Reconciler,
		Watcher:    w.Cluster,
		Ref:        s.Spec.Source.Ref,
		Interval:   s.Spec.Interval.Duration(),
		Poll:       s.Spec.Source.Interval.Duration(),
		Queue:      in.Queue,
		Tip:        tip,
		Remotes:    in.Remotes,
		Tracer:     in.Tracer,
		OnEvent:    recorded(in.Audit, in.Event),
	}}
	if w.Cluster != nil {
		t.Loop.Ready = w.Cluster.Ready
	}
	if ofFlux == nil { // a watch shows sources of Flux, and each Sync tells of the state of its own
		t.Loop.Remote = remoteOf(s, in)
	}
	if member, moves := MemberOf(s); moves && !t.previews {
		member.Cluster = in.Apart
		member.Declare = func(ctx context.Context) error { return t.Loop.Reconciler.Declare(ctx, t.Loop.Ref) }
		t.Loop.Reconciler.Peers = in.Peers
		in.Peers.Join(t.Loop.Reconciler.Sync, member)
	} else {
		in.Peers.Leave(t.Loop.Reconciler.Sync)
	}
	from := secretsOf(s, w.Cluster, in)
	auth, none := Credentials(s.Spec.Source, in.Getenv)
	own, post := publisher(s, in, from)
	if err := errors.Join(none, post); err != nil {
		return nil, err
	}
	repository.Auth = auth
	switch of := s.Spec.Source.CredentialsFrom; {
	case of != nil && of.SecretRef != nil && s.Spec.Source.OverSSH():
		repository.Credentials = from("spec.source.credentialsFrom.secretRef", of.SecretRef).deployKey
	case of != nil && of.SecretRef != nil:
		repository.Credentials = from("spec.source.credentialsFrom.secretRef", of.SecretRef).credentials
	case s.Spec.Source.OverSSH(): // the files may be replaced
		repository.Credentials = func(context.Context) (git.Auth, error) { return Credentials(s.Spec.Source, in.Getenv) }
	default:
		repository.Credentials, err = asApp(s, in, from, auth)
	}
	if err != nil {
		return nil, err
	}
	repository.Credentials = from("spec.source.proxySecretRef", s.Spec.Source.ProxySecretRef).through(repository.Credentials, auth)
	if ofFlux == nil { // an artifact has no branch that pull requests are merged into
		t.Loop.Reconciler.OnForge, err = onForge(s, in, from, repository)
	}
	if err != nil {
		return nil, err
	}
	if t.follower, err = previewsOf(s, in, from, w, repository); err != nil {
		return nil, err
	}
	if own != nil {
		t.posts(s, own, in)
	}
	pushed := new(engine.Signal)
	t.Loop.Pushed, t.Loop.Approved = pushed, &t.approved
	t.subscriber = func() (*forge.Subscriber, error) {
		hears, err := subscriber(s, in, from, pushed.Send)
		if hears != nil && t.follower != nil {
			hears.WakePulls = t.follower.wake
		}
		return hears, err
	}
	if in.Hooks != nil {
		if t.hears, err = t.subscriber(); err != nil {
			return nil, err
		}
		t.hooks = in.Hooks
	}
	return t, nil
}

// posts sets what publishes the reports of the Sync: an outbox of its own, or the board of its cluster.
func (t *Target) posts(s v1alpha1.Sync, own *outbox.Outbox, in Surroundings) {
	t.outbox, t.Loop.Untold = own, true
	posts, is := own.Next.(posting)
	boards := cmp.Or(in.Boards, &Boards{})
	if at, has := boards.seatOf(s); has && is && t.Passes() {
		m := boards.join(s, at, own, posts, in)
		t.outbox, t.Loop.Untold, t.leave = m, false, m.leave
	}
	t.Loop.Publisher = t.outbox
}

// repositoryName returns a name of a repository that is the same for every spelling of its URL. A forge may have several hosts.
func repositoryName(at string) string {
	name := (&git.Repository{URL: at}).Name()
	if of, err := forge.RepositoryOf(at, ""); err == nil && of.Kind != "" {
		name = (&git.Repository{URL: of.Base + "/" + of.String()}).Name()
	}
	return strings.ToLower(name)
}

// An access is a server, with everything that decides about the credentials for it.
type access struct {
	to        string // as JSON
	namespace string // of the Secrets
	reader    *rest.Config
}

// remoteOf returns how a Sync reads its repository. Syncs with the same access look for new commits together. A field of a source counts
// unless it is named here.
func remoteOf(s v1alpha1.Sync, in Surroundings) access {
	of, statuses := s.Spec.Source, s.Spec.Statuses
	of.Ref, of.Path, of.TakeOver = "", "", ""
	of.Interval, of.FetchTimeout, of.Webhook = "", "", nil
	of.Verify, of.History = v1alpha1.Verify{}, ""
	if statuses != nil && statuses.App == nil { // the token of an App may read the repository
		statuses = nil
	}
	return accessOf(s, in, of, statuses)
}

// accessOf returns the access of a Sync to what some fields name.
func accessOf(s v1alpha1.Sync, in Surroundings, fields ...any) access {
	text, err := json.Marshal(fields)
	if err != nil {
		panic(err) // they were decoded
	}
	return access{string(text), s.Namespace, cmp.Or(in.Secrets, in.Cluster)}
}

// NameOf returns the name of a Sync.
func NameOf(s v1alpha1.Sync) inventory.Sync {
	return inventory.Sync{Namespace: s.Namespace, Name: s.Name}
}

// Expect makes what Syncs say together wait for a Sync that is told to run, or name it: a status of its cluster and a preview would be green
// without it. stalled is why it does not run; nil if it does, or soon will.
func (in Surroundings) Expect(s v1alpha1.Sync, stalled error) {
	in.Boards.expect(s)
	in.PullRequests.expect(s, stalled)
}

// Forget ends what Expect began.
func (in Surroundings) Forget(name inventory.Sync) {
	in.Boards.forget(name)
	in.PullRequests.forget(name)
}

// MemberOf returns what a Sync shows to the others of its branch. It returns false for one to which no object of another Sync can move,
// because it writes nothing.
func MemberOf(s v1alpha1.Sync) (m reconcile.Member, moves bool) {
	m = reconcile.Member{Repository: repositoryName(s.Spec.Source.Repo), Flux: isRepository(s), Ref: s.Spec.Source.Ref}
	if ref := s.Spec.Source.SourceRef; ref != nil {
		m.Repository = artifactName(*ref, s)
	}
	if s.Spec.KubeConfig != nil {
		m.Cluster = reconcile.AnyCluster
	}
	return m, s.Spec.ManagementPolicy != v1alpha1.PolicyObservable && !s.Spec.Suspend && s.DeletionTimestamp.IsZero()
}

// secretsOf returns how values of Secrets are read that fields of a Sync name. It returns nil for a field that names none.
func secretsOf(s v1alpha1.Sync, in Cluster, around Surroundings) func(string, *v1alpha1.SecretRef) *secret {
	read := func(context.Context, string) (map[string][]byte, error) { return nil, errNoCluster }
	if in != nil {
		read = in.Secret
	}
	return func(field string, ref *v1alpha1.SecretRef) *secret {
		if ref == nil {
			return nil
		}
		return &secret{field: field, namespace: s.Namespace, ref: *ref, read: read, tell: around.Secret}
	}
}

var errNoCluster = errors.New("there is no cluster to read the Secret from")

// objectsOf returns the maximum size of an object in the repository: the default of package git, unless the Sync allows larger
// files.
func objectsOf(s v1alpha1.Sync) int64 {
	if size := s.Spec.Limits.FileSize.Bytes(); size > git.MaxObject {
		return size
	}
	return 0
}

// Previews reports whether pull requests of the Sync are previewed.
func (t *Target) Previews() bool { return t.follower != nil }

// Approved makes a pass soon, because a person may have approved something.
func (t *Target) Approved() { t.approved.Send() }

// Passes reports whether Run makes passes.
func (t *Target) Passes() bool { return !t.previews }

// Waiting returns a function for the number of reports that wait for the forge; nil if none are posted.
func (t *Target) Waiting() func() int {
	if t.outbox == nil {
		return nil
	}
	return t.outbox.Waiting
}

// Subscriber returns the subscriber with which a push wakes the loop; nil if the Sync has no webhook.
func (t *Target) Subscriber() (*forge.Subscriber, error) { return t.subscriber() }

// Run runs the loop, the outbox and the previews until ctx is done.
func (t *Target) Run(ctx context.Context) { t.Start(ctx)() }

// Start is Run, but returns at once. wait returns when all has ended.
func (t *Target) Start(ctx context.Context) (wait func()) {
	if t.hears != nil {
		context.AfterFunc(ctx, t.hooks.Join(*t.hears))
	}
	previewed := func() {}
	if t.follower != nil {
		previewed = t.follower.start(ctx)
	}
	if t.previews {
		return previewed
	}
	posted := func() {}
	if t.outbox != nil {
		posted = t.outbox.Start(ctx, cmp.Or(t.Loop.Queue, engine.NewQueue(1)))
	}
	loop := t.Loop.Start(ctx)
	return func() {
		loop()
		posted()
		previewed()
	}
}

// Once makes one pass and returns its report.
func (t *Target) Once(ctx context.Context) (report.Report, error) { return t.Loop.Once(ctx) }

// Close removes temporary files, and leaves the other syncs of the process.
func (t *Target) Close() error {
	if t.leave != nil {
		t.leave()
	}
	err := errors.Join(t.repository.Close(), t.wired.Close())
	if t.artifact != nil {
		err = errors.Join(err, t.artifact.Close())
	}
	if t.follower != nil {
		err = errors.Join(err, t.follower.Close())
	}
	return err
}

// Secrets returns the values of environment variables that Headgate must never write anywhere.
func Secrets(s v1alpha1.Sync, getenv func(string) string) []string {
	var names, values []string
	own := variables(s.Spec.Source)
	names = append(names, own.Password, own.Identity)
	if to := s.Spec.Statuses; to != nil && to.TokenFrom != nil && to.TokenFrom.Env != "" {
		names = append(names, to.TokenFrom.Env)
	}
	if to := s.Spec.Statuses; to != nil && to.App != nil && to.App.PrivateKeyFrom.Env != "" {
		names = append(names, to.App.PrivateKeyFrom.Env)
	}
	if hook := s.Spec.Source.Webhook; hook != nil && hook.SecretFrom.Env != "" {
		names = append(names, hook.SecretFrom.Env)
	}
	for _, name := range names {
		if value := strings.TrimSpace(getenv(name)); value != "" {
			values = append(values, value)
		}
	}
	return values
}

// variables returns the environment variables with the credentials of a repository; the zero value if the credentials come from
// elsewhere.
func variables(s v1alpha1.Source) v1alpha1.EnvCredentials {
	switch from := s.CredentialsFrom; {
	case from == nil:
		return v1alpha1.EnvCredentials{
			Username: v1alpha1.DefaultUsernameEnv, Password: v1alpha1.DefaultPasswordEnv,
			Identity: v1alpha1.DefaultIdentityEnv, KnownHosts: v1alpha1.DefaultKnownEnv, CA: v1alpha1.DefaultCAEnv,
		}
	case from.Env != nil:
		return *from.Env
	}
	return v1alpha1.EnvCredentials{}
}

// Credentials returns the credentials of a repository from the environment. A missing password is an error only if the Sync names its
// variable; ssh always needs a key.
func Credentials(s v1alpha1.Source, getenv func(string) string) (git.Auth, error) {
	env, a := variables(s), git.Auth{}
	if env == (v1alpha1.EnvCredentials{}) {
		return a, nil
	}
	a.Username, a.Password = getenv(env.Username), getenv(env.Password)
	if getenv(env.CA) != "" {
		var err error
		if a.CA, err = contents(env.CA, "the certificates of a CA", getenv); err != nil {
			return a, err
		}
	}
	if named := env.Password != "" && env.Password != v1alpha1.DefaultPasswordEnv; named && a.Password == "" {
		return a, fmt.Errorf("spec.source.credentialsFrom.env.password: the environment has no %s", env.Password)
	}
	if !s.OverSSH() {
		return a, nil
	}
	var noKey, noHost error
	a.Identity, noKey = contents(env.Identity, "a private key", getenv)
	a.KnownHosts, noHost = contents(env.KnownHosts, "the lines of known_hosts", getenv)
	return a, errors.Join(noKey, noHost)
}

// contents returns the value of a variable, or of the file that it names by an absolute path.
func contents(name, what string, getenv func(string) string) (string, error) {
	value := getenv(name)
	if filepath.IsAbs(value) {
		raw, err := os.ReadFile(value)
		if value = string(raw); err != nil {
			return "", fmt.Errorf("%s: %w", name, err)
		}
	}
	if strings.TrimSpace(value) == "" {
		return "", fmt.Errorf("the repository needs %s: the environment has no %s; set it to the text, or to the absolute path of its file", what, name)
	}
	return value, nil
}

// OneHost returns an error for each Sync that leaves its credentials to HEADGATE_GIT_PASSWORD or HEADGATE_FORGE_TOKEN although the
// Syncs are on several hosts. Headgate sends credentials only to the host for which they are meant, and in this case that host is
// not known.
func OneHost(syncs []v1alpha1.Sync, getenv func(string) string) error {
	sources, forges := map[string]bool{}, map[string]bool{}
	for _, s := range syncs {
		sources[hostOf(s.Spec.Source.Repo)] = true
		forges[defaultForge(s)] = true
	}
	delete(sources, "")
	delete(forges, "")
	if getenv(v1alpha1.DefaultPasswordEnv) == "" && getenv(v1alpha1.DefaultUsernameEnv) == "" && getenv(v1alpha1.DefaultIdentityEnv) == "" {
		clear(sources)
	}
	const problem = "sync %s: %s: is missing, and the Syncs are on several hosts: %s. Headgate cannot tell which of them %s is for; name %s"
	var problems []error
	for _, s := range syncs {
		if len(sources) > 1 && s.Spec.Source.CredentialsFrom == nil && hostOf(s.Spec.Source.Repo) != "" {
			problems = append(problems, fmt.Errorf(problem, s.Name, "spec.source.credentialsFrom",
				strings.Join(slices.Sorted(maps.Keys(sources)), ", "), v1alpha1.DefaultPasswordEnv, "the credentials of each, or set anonymous: true"))
		}
		if len(forges) > 1 && defaultForge(s) != "" {
			problems = append(problems, fmt.Errorf(problem, s.Name, "spec.statuses.tokenFrom",
				strings.Join(slices.Sorted(maps.Keys(forges)), ", "), v1alpha1.DefaultTokenEnv, "the variable or Secret of each"))
		}
	}
	return errors.Join(problems...)
}

// defaultForge returns the host of the forge that gets the default token for a Sync; "" if none does.
func defaultForge(s v1alpha1.Sync) string {
	to := s.Spec.Statuses
	if to == nil || to.TokenFrom == nil || to.TokenFrom.Env != v1alpha1.DefaultTokenEnv {
		return ""
	}
	r, err := repositoryOf(s.Spec)
	if err != nil {
		return "" // New reports the error
	}
	return hostOf(r.Base)
}

// hostOf returns the host and port of a repository; "" if it is local.
func hostOf(repo string) string {
	u, err := url.Parse(repo)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443", "ssh": "22"}[strings.ToLower(u.Scheme)]
	}
	return net.JoinHostPort(strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), port)
}

// tokenOf returns a function that gets the token of a field.
func tokenOf(field string, spec v1alpha1.Token, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret) (func(context.Context) (string, error), error) {
	if secret := from(field+".secretRef", spec.SecretRef); secret != nil {
		return secret.token, nil
	}
	token := strings.TrimSpace(in.Getenv(spec.Env))
	if token == "" {
		return nil, fmt.Errorf("%s.env: the environment has no %s", field, spec.Env)
	}
	return forge.Token(token), nil
}

// subscriber returns the subscriber for the ref of a Sync; nil if it has no webhook.
func subscriber(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret, wake func()) (*forge.Subscriber, error) {
	spec := s.Spec.Source.Webhook
	if spec == nil {
		return nil, nil
	}
	secret, err := tokenOf("spec.source.webhook.secretFrom", *spec.SecretFrom, in, from)
	if err != nil {
		return nil, err
	}
	if spec.SecretFrom.SecretRef != nil {
		secret = cached(secret, func(err error) {
			if in.Event != nil {
				in.Event(reconcile.Event{Kind: reconcile.WebhookFailed, Err: err})
			}
		})
	}
	names := []string{s.Spec.Source.Repo}
	if s.Spec.Statuses != nil && s.Spec.Statuses.Repository != "" {
		names = append(names, s.Spec.Statuses.Repository) // commits may come from a mirror
	}
	of := &forge.Subscriber{Name: s.Namespace + "/" + s.Name, Secret: secret, Repositories: names, Ref: s.Spec.Source.Ref, Wake: wake}
	if in.Hooks != nil {
		of.Place = s.Namespace
		if ref := spec.SecretFrom.SecretRef; ref != nil {
			of.Shared = strings.Join([]string{reader(in), s.Namespace, ref.Name, ref.Key}, " ")
		}
	}
	return of, nil
}

// reader returns who reads the Secrets of a Sync.
func reader(in Surroundings) string {
	config := cmp.Or(in.Secrets, in.Cluster)
	if config == nil {
		return ""
	}
	return config.Impersonate.UserName
}

// publisher returns the outbox for the statuses of a Sync; nil if it has none.
func publisher(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret) (*outbox.Outbox, error) {
	if s.Spec.Statuses == nil {
		return nil, nil
	}
	account, err := account(s, in, from)
	if err != nil {
		return nil, err
	}
	poster, err := account.Poster()
	if err != nil {
		return nil, fmt.Errorf("spec.statuses: %w", err)
	}
	posts := posting{Statuses: forge.Statuses{
		Poster: poster, Cluster: s.Spec.ClusterName, Home: v1alpha1.DefaultNamespace, TargetURL: s.Spec.PageURL,
	}}
	if of := s.Spec.Statuses.TokenFrom; of != nil && of.SecretRef != nil {
		posts.token = fmt.Sprintf("the Secret %s/%s", s.Namespace, of.SecretRef.Name)
	}
	box := &outbox.Outbox{Next: posts}
	if in.Cache != "" {
		box.Dir = filepath.Join(in.Cache, "outbox", s.Spec.ClusterName, s.Namespace+"."+s.Name)
	}
	box.OnError = failed(in)
	if in.Boards != nil {
		box.Token = in.Boards.gates.Of(accessOf(s, in, account.Repository.Base, s.Spec.Statuses.TokenFrom, s.Spec.Statuses.App))
	}
	return box, nil
}

// A posting publishes the reports of a Sync as statuses.
type posting struct {
	forge.Statuses

	token string // the Secret with the token; "" if there is none
}

// Publish publishes a report. Its error about the token names the Secret.
func (p posting) Publish(ctx context.Context, r report.Report) error {
	err := p.Statuses.Publish(ctx, r)
	if _, refused := errors.AsType[*forge.Refusal](err); refused && p.token != "" {
		return fmt.Errorf("%w; put another token into %s: Headgate tries again", err, p.token)
	}
	return err
}

// failed returns what is done about a report that cannot be published.
func failed(in Surroundings) func(error) {
	if in.Event == nil {
		return nil
	}
	return func(err error) { in.Event(reconcile.Event{Kind: reconcile.PublishFailed, Err: err}) }
}

// account returns the account that posts for a Sync.
func account(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret) (forge.Account, error) {
	repository, err := repositoryOf(s.Spec)
	if err != nil {
		return forge.Account{}, fmt.Errorf("spec.statuses: %w", err)
	}
	app := s.Spec.Statuses.App
	if app == nil {
		token, err := tokenOf("spec.statuses.tokenFrom", *s.Spec.Statuses.TokenFrom, in, from)
		return forge.Account{Repository: repository, Token: token, Plain: in.Plain}, err
	}
	at := *app.PrivateKeyFrom
	if ref := at.SecretRef; ref != nil {
		at.SecretRef = &v1alpha1.SecretRef{Name: ref.Name, Key: cmp.Or(ref.Key, privateKeyKey)}
	}
	key, err := tokenOf("spec.statuses.app.privateKeyFrom", at, in, from)
	token, none := forge.App{ID: app.ID, Installation: app.Installation, Key: key, Plain: in.Plain}.Token(repository, nil)
	if none != nil {
		return forge.Account{}, fmt.Errorf("spec.statuses.app: %w", none)
	}
	return forge.Account{Repository: repository, Token: token, Plain: in.Plain}, err
}

// asApp returns how the App of a Sync reads its repository. It returns nil if the Sync has no App or has other credentials, or if
// the repository is not on the App's forge.
func asApp(s v1alpha1.Sync, in Surroundings, from func(string, *v1alpha1.SecretRef) *secret, own git.Auth) (func(context.Context) (git.Auth, error), error) {
	if from := s.Spec.Source.CredentialsFrom; from != nil && from.Anonymous {
		return nil, nil
	}
	if s.Spec.Statuses == nil || s.Spec.Statuses.App == nil || own.Password != "" || own.Username != "" {
		return nil, nil
	}
	account, err := account(s, in, from)
	if err != nil || !strings.HasPrefix(s.Spec.Source.Repo, account.Repository.Base+"/") {
		return nil, err
	}
	return func(ctx context.Context) (git.Auth, error) {
		token, err := account.Token(ctx)
		return git.Auth{Username: account.Repository.AppUser(), Password: token}, err
	}, nil
}

// repositoryOf returns the repository that gets the statuses: the source of the Sync, unless its statuses name
// another one.
func repositoryOf(spec v1alpha1.Spec) (forge.Repository, error) {
	statuses := spec.Statuses
	kind := kindOf(statuses.Forge)
	var r forge.Repository
	var err error
	if statuses.URL == "" || statuses.Repository == "" {
		if r, err = forge.RepositoryOf(spec.Source.Repo, kind); err != nil {
			return r, fmt.Errorf("%w; specify url and repository", err)
		}
	}
	if statuses.URL != "" || statuses.Repository != "" {
		if statuses.URL == "" {
			kind = r.Kind
		}
		if r, err = forge.RepositoryAt(cmp.Or(statuses.URL, r.Base), cmp.Or(statuses.Repository, r.String()), kind); err != nil {
			return r, err
		}
	}
	if r.Kind == "" {
		return r, fmt.Errorf("the URL %s does not show the kind of the forge; set forge: %s", r.Base, v1alpha1.Either(v1alpha1.Forges))
	}
	return r, nil
}
