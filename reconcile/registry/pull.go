package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/network"
	"headgate.dev/headgate/render/catalogue"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"
	"headgate.dev/headgate/render/xpkg"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/singleflight"
)

const (
	toAsk    = time.Minute      // timeout of a request for a tag
	toPull   = 10 * time.Minute // timeout of a pull of one package
	metadata = 4 << 20          // maximum bytes of a manifest or a config
	layers   = 1 << 30          // maximum bytes of the pulled layers of an image
	maxTags  = 100_000          // maximum number of tags in a repository
)

// The rules of findings about images.
const (
	RuleUnreachable = "registry-unreachable"
	RuleMoved       = "package-tag-moved"
	RuleAmbiguous   = "package-version-by-chance"
)

// A puller pulls the packages that commits mention, each of them once.
type puller struct {
	cache   cache
	offline bool
	tags    bool // see Resolver.Tags
	fork    *Fork
	reach   *Reach // nil is not limited
	keys    authn.Keychain
	secret  func(ctx context.Context, name string) (map[string][]byte, error)
	hide    func(value string)
	options []remote.Option
	flights singleflight.Group

	keyFiles    map[string]string
	trustedRoot string

	mu       sync.Mutex
	clients  map[string]clientOf // by the names of Secrets; kept for one commit, because a client never forgets a failure
	revision string
	replies  *replies
	down     map[string]error // registries that did not respond, with the error
	left     int64            // remaining bytes that a commit of a fork may pull
}

// replies holds what registries answered about tags, so that both sides of a comparison use the same image.
type replies struct {
	began time.Time

	mu      sync.Mutex
	lists   map[string][]string // tags by repository, and proofs by image
	digests map[string]digested // resolved digests, by tag
}

// or returns other replies if these are absent or older than fresh, where 0 is any age.
func (r *replies) or(fresh time.Duration) *replies {
	if r != nil && (fresh == 0 || time.Since(r.began) < fresh) {
		return r
	}
	return &replies{began: time.Now(), lists: map[string][]string{}, digests: map[string]digested{}}
}

func (r *replies) list(of string) ([]string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, ok := r.lists[of]
	return list, ok
}

func (r *replies) addList(of string, list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lists[of] = list
}

func (r *replies) digest(of string) (digested, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	d, ok := r.digests[of]
	return d, ok
}

func (r *replies) addDigest(of string, d digested) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.digests[of] = d
}

// A digested is a resolved tag.
type digested struct {
	digest   string
	findings []manifest.Finding
}

func newPuller(s *Resolver) *puller {
	p := &puller{
		cache:   cache{dir: cmp.Or(s.Cache, s.made.Path), bytes: cacheBytes, budget: s.Budget},
		offline: s.Offline, tags: s.Tags, fork: s.Fork, reach: s.Reach, keys: s.Keychain, hide: s.Hide,
		keyFiles: s.KeyFiles, trustedRoot: s.TrustedRoot, replies: s.replies,
	}
	if p.fork != nil {
		p.reach = &Reach{Registries: p.fork.Registries, fork: true}
	}
	p.secret = p.reach.reading(s.Secret)
	p.options = []remote.Option{
		remote.WithTransport(newTransport(p.reach)), remote.WithUserAgent("headgate"),
		remote.WithRetryBackoff(remote.Backoff{Duration: 300 * time.Millisecond, Factor: 3, Jitter: 0.1, Steps: 3}),
	}
	if p.keys == nil {
		p.keys = authn.DefaultKeychain
	}
	if p.fork != nil {
		p.keys, p.secret = anonymous{}, nil
		p.cache.dir = filepath.Join(p.cache.dir, "forks") // a separate directory: knowing a digest must not give access to its content
	}
	return p
}

// begin starts the requests for a commit. It forgets answers that are older than fresh, and registries that did not respond except
// those in down.
func (p *puller) begin(revision string, fresh time.Duration, down map[string]error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.revision = revision
	p.left = bytesOfFork
	p.down = map[string]error{}
	maps.Copy(p.down, down)
	p.clients = map[string]clientOf{}
	p.replies = p.replies.or(fresh)
}

// silent returns the registries that did not respond.
func (p *puller) silent() map[string]error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.down)
}

// current returns the replies for the current commit.
func (p *puller) current() *replies {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.replies
}

// answer finds the image for a request, and pulls it.
func (p *puller) answer(ctx context.Context, r packages.Request) packages.Image {
	i := packages.Image{Request: r, Version: r.Version}
	if err := p.find(ctx, &i); err != nil {
		i.Err = shortError{err}
	}
	return i
}

func (p *puller) find(ctx context.Context, i *packages.Image) error {
	r := i.Request
	if i.Version == "" {
		if err := p.choose(ctx, i); err != nil {
			return err
		}
	}
	asked := r.Image(i.Version)
	image := r.Configs.Rewritten(asked)
	ref, err := name.ParseReference(image)
	if err == nil {
		err = p.reach.check(ref.Context().Registry)
	}
	if err != nil {
		return p.reach.withoutMirror(err, r.Configs, asked)
	}
	from := origin{ref.Context(), r.Secrets(image), r.PullPolicy == packages.PullNever}
	i.Digest = r.Digest
	if _, isTag := ref.(name.Tag); isTag && i.Digest != "" && (p.tags || r.Applied) {
		i.Findings = append(i.Findings, p.contradicted(ctx, from, ref, r)...)
	}
	if at, ok := ref.(name.Digest); ok {
		i.Digest = at.DigestStr() // whatever the lock records: Crossplane pulls this
	}
	if i.Digest == "" {
		d, err := p.digest(ctx, from, ref, r.Installed)
		if err != nil {
			return err
		}
		i.Digest, i.Findings = d.digest, append(i.Findings, d.findings...)
	}
	if !crossplane.IsDigest(i.Digest) {
		return fmt.Errorf("%q is not a SHA-256 digest", i.Digest)
	}
	for _, by := range p.demands(r.Configs, asked) {
		findings, err := p.verified(ctx, from, i.Digest, by)
		if err != nil {
			return fmt.Errorf("%s demands that its signature is verified: %w", by, err)
		}
		i.Findings = append(i.Findings, findings...)
	}
	if _, err := p.pulled(ctx, from, i.Digest); err != nil {
		if r.Applied {
			return fmt.Errorf("cannot read %s, the image that this sync applied; if the registry does not have it any more, name another digest or version: %w", i.Digest, err)
		}
		return err
	}
	i.Open = p.open(ctx, from, i.Digest)
	return nil
}

// open returns a function that opens an image.
func (p *puller) open(ctx context.Context, from origin, digest string) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) {
		img, err := p.pulled(context.WithoutCancel(ctx), from, digest) // pulls it again if the cache was emptied
		if err != nil {
			return nil, shortError{err}
		}
		return xpkg.Of(img, catalogue.MaxPackage)
	}
}

// opener returns a function that opens an image that another process pulled.
func (p *puller) opener(ctx context.Context, r packages.Request, i packages.Image) func() (io.ReadCloser, error) {
	ref, err := name.ParseReference(r.Configs.Rewritten(r.Image(i.Version)))
	if err != nil {
		return func() (io.ReadCloser, error) { return nil, err }
	}
	return p.open(ctx, origin{Repository: ref.Context(), never: true}, i.Digest)
}

// choose selects a version that satisfies all constraints. Crossplane resolves one dependency after another, so it
// may select a different version if they differ.
func (p *puller) choose(ctx context.Context, i *packages.Image) error {
	r := i.Request
	tags, findings, err := p.list(ctx, r)
	if err != nil {
		return err
	}
	i.Findings = append(i.Findings, findings...)
	if i.Version, err = packages.Choose(tags, r.Constraints); err != nil {
		return err
	}
	for _, c := range r.Constraints {
		if alone, err := packages.Choose(tags, []string{c}); err == nil && alone != i.Version {
			i.Findings = append(i.Findings, manifest.Finding{
				Rule: RuleAmbiguous, Severity: manifest.Warning, About: manifest.About{Subject: r.Source},
				Message: fmt.Sprintf("packages depend on %s in versions %q: %s satisfies all of them, but Crossplane installs %s if it resolves %q first, and does not change it later", r.Source, r.Constraints, i.Version, alone, c),
				Fix:     "install " + crossplane.Image(r.Source, i.Version) + " with an object of the commit",
			})
			break
		}
	}
	return nil
}

// list returns the tags of a repository.
func (p *puller) list(ctx context.Context, r packages.Request) ([]string, []manifest.Finding, error) {
	source := r.Configs.Rewritten(r.Source)
	repo, err := name.NewRepository(source)
	if err == nil {
		err = p.reach.check(repo.Registry)
	}
	if err != nil {
		return nil, nil, p.reach.withoutMirror(err, r.Configs, r.Source)
	}
	return p.listed(ctx, origin{repo, r.Secrets(source), r.PullPolicy == packages.PullNever}, repo.Name(), "the versions of "+repo.Name(), func(ctx context.Context, client *remote.Puller) ([]string, error) {
		var tags []string
		pages, err := client.Lister(ctx, repo)
		for err == nil && pages.HasNext() {
			var page *remote.Tags
			if page, err = pages.Next(ctx); err == nil {
				tags = append(tags, page.Tags...)
			}
			if len(tags) > maxTags {
				return nil, network.Errorf("%s has more than %d tags; name a version in the object that installs it", repo.Name(), maxTags)
			}
		}
		slices.Sort(tags)
		return tags, err
	})
}

// listed requests a list from a registry once. what describes the list in a finding about an old answer.
func (p *puller) listed(ctx context.Context, from origin, of, what string, question func(context.Context, *remote.Puller) ([]string, error)) ([]string, []manifest.Finding, error) {
	replies := p.current()
	list, ok := replies.list(of)
	if ok {
		return list, nil, nil
	}
	err := p.ask(ctx, from, func(ctx context.Context, client *remote.Puller) (err error) {
		list, err = question(ctx, client)
		return err
	})
	if err == nil {
		p.cache.remember(answerRecord{Of: of, Tags: list})
		replies.addList(of, list)
		return list, nil, nil
	}
	known, ok := p.cache.recall(of)
	if !ok || !isOutage(err) && !errors.Is(err, errOffline) {
		return nil, nil, err
	}
	return known.Tags, p.old(err, what+" come from its last answer"), nil
}

// digest resolves a tag. It returns the installed image if the tag has ever resolved to it.
func (p *puller) digest(ctx context.Context, from origin, ref name.Reference, installed crossplane.Installed) (digested, error) {
	of := ref.Name() + " " + installed.Revision
	replies := p.current()
	d, ok := replies.digest(of)
	if ok {
		return d, nil
	}
	before, _ := p.cache.recall(ref.Name())
	for _, digest := range []string{before.Digest, before.First} {
		if installed.Is(digest) {
			return digested{digest: digest}, nil
		}
	}
	err := p.ask(ctx, from, func(ctx context.Context, client *remote.Puller) error {
		head, err := client.Head(ctx, ref)
		if err == nil {
			d.digest = head.Digest.String()
		}
		if !errors.Is(err, errNoDigest) {
			return err
		}
		got, getting := client.Get(ctx, ref) // as Crossplane does; the client computes the digest
		switch {
		case getting == nil:
			d.digest = got.Digest.String()
			return nil
		case isOutage(getting), troubleOf(getting) != "":
			return getting
		}
		return network.Errorf("%v, and not the manifest either: %v", errNoDigest, foreign(getting))
	})
	known, ok := p.cache.recall(ref.Name())
	switch {
	case err == nil:
		d.findings = p.moved(ref, known, d.digest)
		if installed.Revision != "" && !installed.Is(d.digest) {
			d.findings = []manifest.Finding{{
				Rule: RuleMoved, Severity: manifest.Warning, About: manifest.About{Subject: ref.Name()},
				Message: fmt.Sprintf("%s no longer resolves to the image that is installed as revision %s: this report uses %s, which Crossplane installs at its next check", ref.Name(), installed.Revision, d.digest),
				Fix:     "name the digest in the object that installs it",
			}}
		}
		replies.addDigest(of, d)
		return d, nil
	case ok && known.Digest != "" && (isOutage(err) || errors.Is(err, errOffline)):
		return digested{known.Digest, p.old(err, ref.Name()+" is assumed to be the image of its last check, "+known.Digest)}, nil
	}
	return digested{}, err
}

// contradicted returns a finding if a tag resolves to another image than in the lock of the commit, or than the sync applied. It returns
// nothing if the registry does not respond.
func (p *puller) contradicted(ctx context.Context, from origin, ref name.Reference, r packages.Request) []manifest.Finding {
	locked := r.Digest
	d, err := p.digest(ctx, from, ref, crossplane.Installed{})
	if err != nil || d.digest == locked {
		return nil
	}
	if r.Applied {
		return []manifest.Finding{{
			Rule: RuleMoved, Severity: manifest.Warning, About: manifest.About{Subject: ref.Name()},
			Message: fmt.Sprintf("%s is %s now; this sync keeps the image that it applied, %s, until the commit names another version", ref.Name(), d.digest, locked),
			Fix:     "name the digest, or set packagePullPolicy: Always",
		}}
	}
	return []manifest.Finding{{
		Rule: packages.RuleLock, Severity: manifest.Warning, About: manifest.About{Subject: ref.Name()},
		Message: fmt.Sprintf("%s locks %s for %s, and the tag is %s now, which Crossplane installs", packages.LockFile, locked, ref.Name(), d.digest),
		Fix:     "run headgate lock --update, or name the digest in the object that installs it",
	}}
}

// moved stores the digest of a tag. It returns a finding if the tag had another digest for the same commit.
func (p *puller) moved(ref name.Reference, known answerRecord, digest string) []manifest.Finding {
	now := answerRecord{Of: ref.Name(), Digest: digest, Revision: p.revision, First: digest}
	if p.revision != "" && known.Revision == p.revision && known.First != "" {
		now.First = known.First
	}
	if known.Digest != now.Digest || known.Revision != now.Revision {
		p.cache.remember(now)
	}
	if now.First == digest {
		return nil
	}
	return []manifest.Finding{{
		Rule: RuleMoved, Severity: manifest.Warning, About: manifest.About{Subject: ref.Name()},
		Message: fmt.Sprintf("%s resolved to another image earlier for this commit: it was %s, and is now %s; the installed image depends on when Crossplane checked", ref.Name(), now.First, digest),
		Fix:     "name the digest, or run headgate lock",
	}}
}

// old returns the finding that a registry could not be asked and an old answer was used.
func (p *puller) old(err error, what string) []manifest.Finding {
	f := manifest.Finding{Rule: RuleUnreachable, Severity: manifest.Warning, About: manifest.About{Subject: what}, Message: "the registry cannot be reached, so " + what + ": " + shortError{err}.Error()}
	if errors.Is(err, errOffline) {
		f.Severity, f.Message = manifest.Note, "no registry is asked, so "+what
	}
	return []manifest.Finding{f}
}

// An origin is the repository to pull an image from.
type origin struct {
	name.Repository

	secrets []string // pull secrets
	never   bool     // never send a request to it
}

// offlineFor returns why Headgate does not ask a registry, or nil.
func (p *puller) offlineFor(from origin) error {
	switch {
	case p.offline:
		return fmt.Errorf("%w (--offline)", errOffline)
	case from.never:
		return fmt.Errorf("%w (packagePullPolicy: Never)", errOffline)
	}
	return nil
}

// ask sends a request to a registry, unless that registry has already failed to respond.
func (p *puller) ask(ctx context.Context, from origin, question func(context.Context, *remote.Puller) error) error {
	if err := p.offlineFor(from); err != nil {
		return err
	}
	p.mu.Lock()
	err := p.down[from.Registry.Name()]
	p.mu.Unlock()
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, toAsk)
	defer cancel()
	client, why := p.client(within, from.secrets)
	err = foreign(question(within, client))
	if ctx.Err() == nil { // otherwise the caller cancelled the request
		err = troubled(from.RegistryStr(), err)
	}
	if err != nil && ctx.Err() == nil && isOutage(err) {
		p.mu.Lock()
		p.down[from.Registry.Name()] = err
		p.mu.Unlock()
	}
	if err != nil && why != nil {
		err = fmt.Errorf("%w; %w", err, why)
	}
	return err
}

// pulled returns an image. All parts that its package needs are on disk.
func (p *puller) pulled(ctx context.Context, from origin, digest string) (v1.Image, error) {
	made, err, _ := p.flights.Do(from.Name()+"@"+digest, func() (any, error) {
		ctx, cancel := context.WithTimeout(ctx, toPull)
		defer cancel()
		return p.pull(ctx, from, digest)
	})
	if err != nil && ctx.Err() == nil {
		return nil, troubled(from.RegistryStr(), err)
	}
	if err != nil {
		return nil, err
	}
	img, _ := made.(v1.Image) // always a v1.Image
	return img, nil
}

func (p *puller) pull(ctx context.Context, from origin, digest string) (v1.Image, error) {
	raw, err := p.manifest(ctx, from, digest)
	if err != nil {
		return nil, err
	}
	if child, isIndex, err := childOf(raw); err != nil {
		return nil, err
	} else if isIndex {
		if raw, err = p.manifest(ctx, from, child); err != nil {
			return nil, err
		}
	}
	var m v1.Manifest
	if err := json.Unmarshal(raw, &m); err != nil {
		return nil, fmt.Errorf("its manifest cannot be read: %w", network.Foreign(err))
	}
	if m.SchemaVersion != 2 || m.Config.Digest.Hex == "" || len(m.Layers) == 0 {
		return nil, errors.New("it is not an image with layers, so it is not a package")
	}
	if len(m.Layers) > xpkg.MaxLayers {
		return nil, fmt.Errorf("it has %d layers, and at most %d are read", len(m.Layers), xpkg.MaxLayers)
	}
	needed := xpkg.Needed(m.Layers)
	size := int64(0)
	for _, l := range needed {
		size += max(l.Size, 0)
	}
	switch {
	case m.Config.Size > metadata:
		return nil, fmt.Errorf("its config is larger than %d bytes", metadata)
	case size > layers:
		return nil, fmt.Errorf("its layers are larger than %d bytes", layers)
	}
	for _, blob := range slices.Concat([]v1.Descriptor{m.Config}, needed) {
		if err := p.have(ctx, from, blob); err != nil {
			return nil, err
		}
	}
	return imageOf(p.cache, raw, m)
}

// childOf returns the digest of the image in an index for the platform that Crossplane uses.
func childOf(raw []byte) (digest string, isIndex bool, err error) {
	var index v1.IndexManifest
	if err := json.Unmarshal(raw, &index); err != nil {
		return "", false, fmt.Errorf("its manifest cannot be read: %w", network.Foreign(err))
	}
	if len(index.Manifests) == 0 {
		return "", false, nil
	}
	want := v1.Platform{OS: "linux", Architecture: "amd64"}
	for _, m := range index.Manifests {
		if m.Platform == nil || m.Platform.Satisfies(want) {
			return m.Digest.String(), true, nil
		}
	}
	return "", true, fmt.Errorf("none of its %d images is for %s", len(index.Manifests), want)
}

// manifest returns a manifest, from the cache or from its registry.
func (p *puller) manifest(ctx context.Context, from origin, digest string) ([]byte, error) {
	if !crossplane.IsDigest(digest) {
		return nil, fmt.Errorf("%q is not a SHA-256 digest", digest)
	}
	if raw, err := p.cache.read(digest, metadata); err == nil {
		return raw, nil
	}
	var raw []byte
	err := p.ask(ctx, from, func(ctx context.Context, client *remote.Puller) error {
		got, err := client.Get(ctx, from.Digest(digest))
		if err == nil {
			raw = got.Manifest
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(raw) > metadata {
		return nil, fmt.Errorf("its manifest is larger than %d bytes", metadata)
	}
	share, _ := p.cache.budget.Begin(ctx, p.cache.blob(digest))
	defer share.End()
	return raw, p.cache.store(share, digest, metadata, bytes.NewReader(raw))
}

// have makes sure that a blob is on disk.
func (p *puller) have(ctx context.Context, from origin, blob v1.Descriptor) error {
	digest := blob.Digest.String()
	switch {
	case !crossplane.IsDigest(digest):
		return fmt.Errorf("%q is not a SHA-256 digest", digest)
	case p.cache.holds(digest):
		return nil
	}
	if err := p.offlineFor(from); err != nil {
		return err
	}
	if err := p.charge(blob.Size); err != nil {
		return err
	}
	share, ctx := p.cache.budget.Begin(ctx, p.cache.blob(digest))
	defer share.End()
	client, _ := p.client(ctx, from.secrets) // the manifest came with it
	layer, err := client.Layer(ctx, from.Digest(digest))
	if err != nil {
		return foreign(err)
	}
	content, err := layer.Compressed()
	if err != nil {
		return foreign(err)
	}
	return share.Explain(errors.Join(p.cache.store(share, digest, blob.Size, replying{content}), content.Close()))
}

// replying is a reader of a registry's data. Its errors do not quote the registry.
type replying struct{ io.Reader }

func (a replying) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if err == nil || err == io.EOF {
		return n, err
	}
	return n, foreign(err)
}
