// Package registry wraps what fetches commits: it fills in the packages that a commit
// mentions and does not hold, from the registries that have them. Which ones a commit needs,
// and in what version, is for package render; what it pulled once it keeps on disk.
//
//	Fetch ─► Input ─Read─► Documents ─Missing─► Requests ─pull─► Images ─┐
//	                           ▲────────── until nothing is missing ─────────┘
package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/reconcile/disk"
	"headgate.dev/headgate/reconcile/scratch"
	"headgate.dev/headgate/render"
	"headgate.dev/headgate/render/crossplane"
	"headgate.dev/headgate/render/manifest"
	"headgate.dev/headgate/render/packages"

	"github.com/google/go-containerregistry/pkg/authn"
)

// A Fetcher fetches the commits that a Resolver completes.
type Fetcher interface {
	Fetch(ctx context.Context, ref string) (render.Input, error)
}

// A Resolver fetches commits together with the packages that they mention. It is safe for concurrent use. A package
// that cannot be pulled is not an error of Fetch: it holds the error, and package render decides on the consequences.
type Resolver struct {
	Next     Fetcher
	How      render.Options // the options with which the commits are rendered
	Cache    string         // the directory for pulled content; "" is a temporary one
	Offline  bool           // send no requests to registries, and use only the cache
	Keychain authn.Keychain // nil means the docker configuration of the user

	// Secret reads pull secrets and Secrets with public keys. It is nil without a cluster. Hide receives the
	// credentials in them; it may be nil.
	Secret func(ctx context.Context, name string) (map[string][]byte, error)
	Hide   func(value string)

	// KeyFiles are files of public keys, by their names in an ImageConfig, "secret/key". They take precedence over
	// Secrets in the cluster. TrustedRoot is a file with a trusted root of sigstore, such as the public
	// trusted_root.json. Without it, no identity can be verified.
	KeyFiles    map[string]string
	TrustedRoot string

	// Installed returns the installed packages of the target cluster, or nil if it has no Crossplane. The function is
	// nil without a cluster.
	Installed func(ctx context.Context) ([]crossplane.Installed, error)
	// Images returns the ImageConfigs of the target cluster, or nil if it has no Crossplane. The function is nil
	// without a cluster.
	Images func(ctx context.Context) ([]packages.LiveConfig, error)

	// Applied returns the images that the sync applied; see render.Input. It is nil without a cluster.
	Applied func(ctx context.Context) ([]packages.Locked, error)

	// Budget bounds Cache with what is around it; nil bounds nothing.
	Budget *disk.Budget

	// Ask sends requests to another process, which stores the content in the cache. If it is nil, this process sends
	// them to the registry.
	Ask func(ctx context.Context, r packages.Request) (packages.Image, error)

	// Keeps lets packages that cannot be pulled use the content that the commit keeps. It is for commits that are only compared.
	Keeps bool

	// Tags also resolves the tag of a version that a lock pins, to report a difference, because the lock does not
	// bind Crossplane.
	Tags bool

	// Fork is set when the commits come from a fork. Then Headgate does not use Keychain, Secret and Installed, and
	// only sends requests to the registries in Fork. Signatures that the cluster's ImageConfigs demand, in Images,
	// are required regardless of the commit.
	Fork *Fork

	// Reach limits requests and Secrets for commits that are not trusted. nil has no limits.
	Reach *Reach

	// Fresh is the maximum age of a tag's digest. With 0, each tag is resolved once for all commits of a process, so
	// that both sides of a comparison use the same image.
	Fresh time.Duration

	mu      sync.Mutex
	made    scratch.Dir         // the temporary directory
	pulls   *puller             // created for the first package
	replies *replies            // what its puller begins with
	down    map[string]error    // registries that did not respond before
	recent  map[string]answered // answers by revision
}

// An answered holds the packages of a commit.
type answered struct {
	packages  []packages.Image
	applied   []packages.Locked
	installed []crossplane.Installed
	images    []packages.LiveConfig
	at        time.Time
}

const (
	most     = 64 // maximum rounds of resolving dependencies
	together = 4  // packages that are pulled concurrently
	kept     = 4  // commits whose answers are remembered
)

// Fetch fetches a commit and the packages that it mentions.
func (s *Resolver) Fetch(ctx context.Context, ref string) (render.Input, error) {
	in, err := s.Next.Fetch(ctx, ref)
	if err != nil {
		return in, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	look := sync.OnceValue(func() error { return s.look(ctx, &in) })
	if known, is := s.known(in.Revision); is {
		if in.Packages, in.Applied = known.packages, known.applied; len(in.Packages) == 0 {
			return in, ctx.Err()
		}
		if err := look(); err != nil || known.sawSame(in) {
			return in, err
		}
	}
	in.Packages = []packages.Image{}
	began := time.Now()
	docs, unreadable := render.Read(in, s.How)
	if unreadable == nil { // otherwise nothing is missing, and Render reports the error
		if docs, err = s.resolve(ctx, &in, docs, look); err != nil {
			return in, err
		}
		in.Documents = &docs
	}
	if s.pulls != nil {
		s.pulls.cache.sweep()
	}
	s.remember(in, began)
	return in, nil
}

// known returns the answers for a commit, if they are recent enough.
func (s *Resolver) known(revision string) (answered, bool) {
	known, ok := s.recent[revision]
	return known, ok && revision != "" && (s.Fresh == 0 || time.Since(known.at) < s.fresh(known.packages))
}

// sawSame reports whether the cluster still holds the packages and ImageConfigs of the answers.
func (a answered) sawSame(in render.Input) bool {
	return slices.Equal(in.Installed, a.installed) && reflect.DeepEqual(in.Images, a.images)
}

// resolve adds to a commit the packages that its documents mention, and those on which these depend, until none is missing. look
// reads the cluster; it is called when the first package is missing.
func (s *Resolver) resolve(ctx context.Context, in *render.Input, docs render.Documents, look func() error) (render.Documents, error) {
	docs = docs.With(*in, s.How)
	missing := docs.Missing()
	if len(missing) == 0 {
		return docs, nil
	}
	if err := s.begin(in.Revision, missing); err != nil {
		return docs, err
	}
	if err := look(); err != nil {
		return docs, err
	}
	if s.Applied != nil {
		var err error
		if in.Applied, err = s.Applied(ctx); err != nil {
			return docs, err
		}
	}
	docs = docs.With(*in, s.How)
	missing = docs.Missing()
	for round := 0; len(missing) > 0; round++ {
		if round == most {
			return docs, fmt.Errorf("the dependencies of packages have no end: after %d rounds, %s is still missing", most, missing[0].Source)
		}
		if s.Fork != nil && len(in.Packages)+len(missing) > maxOfFork {
			return docs, fmt.Errorf("%s: this commit of a fork asks for more than %d packages", missing[0].Origin, maxOfFork)
		}
		in.Packages = merged(in.Packages, s.withKept(in.Files, s.answer(ctx, missing)))
		if err := ctx.Err(); err != nil {
			return docs, err
		}
		docs = docs.With(*in, s.How)
		missing = docs.Missing()
	}
	return docs, nil
}

// look reads the installed packages and ImageConfigs from the cluster, if there is one.
func (s *Resolver) look(ctx context.Context, in *render.Input) (err error) {
	if s.Installed != nil && s.Fork == nil {
		if in.Installed, err = s.Installed(ctx); err != nil {
			return err
		}
	}
	if s.Images == nil {
		return nil
	}
	in.Images, err = s.Images(ctx)
	if err != nil && s.Fork != nil && ctx.Err() == nil { // the pass of the cluster reports the reason
		return errors.New("the ImageConfigs of the cluster cannot be read, so it is not known what signatures it demands")
	}
	return err
}

// fresh returns how long the answers for a commit remain valid: at most a minute if an object makes Crossplane check
// for a new image every minute.
func (s *Resolver) fresh(images []packages.Image) time.Duration {
	always := slices.ContainsFunc(images, func(i packages.Image) bool { return i.Request.PullPolicy == packages.PullAlways })
	if always {
		return min(s.Fresh, time.Minute)
	}
	return s.Fresh
}

// begin prepares for pulling the packages of a commit.
func (s *Resolver) begin(revision string, requests []packages.Request) error {
	if err := s.makeDir(); err != nil {
		return err
	}
	if s.pulls == nil {
		s.pulls = newPuller(s)
	}
	asked := make([]packages.Image, len(requests))
	for i, r := range requests {
		asked[i].Request = r
	}
	s.pulls.begin(revision, s.fresh(asked), s.down)
	return nil
}

// Close removes temporary files. Fetched content cannot be read afterwards.
func (s *Resolver) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made.Path == "" {
		return nil
	}
	return s.made.Remove()
}

// answer answers requests in their order, several of them concurrently.
func (s *Resolver) answer(ctx context.Context, requests []packages.Request) []packages.Image {
	images := make([]packages.Image, len(requests))
	manifest.EachOf(len(requests), together, func(i int) {
		if s.Ask == nil {
			images[i] = s.pulls.answer(ctx, requests[i])
		} else {
			images[i] = s.asked(ctx, requests[i])
		}
	})
	return images
}

// asked returns the answer of another process, whose content is in the cache.
func (s *Resolver) asked(ctx context.Context, r packages.Request) packages.Image {
	i, err := s.Ask(ctx, r)
	if err != nil {
		return packages.Image{Request: r, Version: r.Version, Err: err}
	}
	i.Request = r
	if i.Err == nil {
		i.Open = s.pulls.opener(ctx, r, i)
	}
	return i
}

// Within returns a Resolver for a commit with this Reach. It shares the cache and the digests of tags, and has its own requests: the
// registries that do not respond for one pull request do not affect others. A nil Reach is for the target of a pull request.
func (s *Resolver) Within(reach *Reach) (*Resolver, error) {
	dir, err := s.Directory()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulls != nil {
		s.replies = s.pulls.current()
	}
	s.replies = s.replies.or(min(s.Fresh, time.Minute))
	return &Resolver{
		Next: s.Next, How: s.How, Cache: dir, Offline: s.Offline, Keychain: s.Keychain, Secret: s.Secret, Hide: s.Hide,
		KeyFiles: s.KeyFiles, TrustedRoot: s.TrustedRoot, Budget: s.Budget, Installed: s.Installed, Applied: s.Applied, Images: s.Images, Ask: s.Ask,
		Keeps: s.Keeps, Tags: s.Tags, Fork: s.Fork, Reach: reach, replies: s.replies,
	}, nil
}

// Head returns the Resolver for the head of a pull request, which reaches what its target names, the listed registries, and what the
// ImageConfigs of the cluster name.
func (s *Resolver) Head(ctx context.Context, named packages.Named, listed []string) (*Resolver, error) {
	if s.Images != nil {
		live, _ := s.Images(ctx) // what cannot be read names nothing; the commit's own list reports the error
		named = named.And(packages.NamedBy(live))
	}
	reach := ReachOf(named, listed...)
	head, err := s.Within(&reach)
	if err == nil && s.pulls != nil {
		head.down = s.pulls.silent() // both sides of a comparison lack the same registries
	}
	return head, err
}

// Answer answers a request of another process, and stores the content in the cache. It does not interpret the content.
func (s *Resolver) Answer(ctx context.Context, revision string, r packages.Request) (packages.Image, error) {
	if err := s.beginOnce(revision, r); err != nil {
		return packages.Image{}, err
	}
	return s.pulls.answer(ctx, r), nil
}

func (s *Resolver) beginOnce(revision string, r packages.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulls != nil && s.pulls.revision == revision {
		return nil
	}
	return s.begin(revision, []packages.Request{r})
}

// Versions returns the tags in a package's repository, unsorted.
func (s *Resolver) Versions(ctx context.Context, of packages.Request) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulls == nil {
		if err := s.begin("", []packages.Request{of}); err != nil {
			return nil, err
		}
	}
	tags, _, err := s.pulls.list(ctx, of)
	return tags, err
}

// makeDir creates a temporary directory for images if none is set.
func (s *Resolver) makeDir() (err error) {
	if s.Cache == "" && s.made.Path == "" {
		s.made, err = scratch.New("packages")
	}
	return err
}

// Directory returns the directory of pulled images. It creates a temporary one if none is set.
func (s *Resolver) Directory() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeDir(); err != nil {
		return "", err
	}
	return cmp.Or(s.Cache, s.made.Path), nil
}

// merged returns images, each replaced by a newer one with the same source if there is one.
func merged(images, newer []packages.Image) []packages.Image {
	images = slices.DeleteFunc(slices.Clone(images), func(i packages.Image) bool {
		return slices.ContainsFunc(newer, func(n packages.Image) bool { return n.Request.Source == i.Request.Source })
	})
	images = append(images, newer...)
	slices.SortFunc(images, func(a, b packages.Image) int { return cmp.Compare(a.Request.Source, b.Request.Source) })
	return images
}

// remember keeps the answers for a commit, if they have no problems. For a package with a copy in the tree, the next
// pass then does not wait for a silent registry.
func (s *Resolver) remember(in render.Input, at time.Time) {
	troubled := slices.ContainsFunc(in.Packages, func(i packages.Image) bool {
		return (i.Err != nil || i.Kept != nil || len(i.Findings) > 0) && !i.Request.Copied
	})
	if in.Revision == "" || troubled {
		delete(s.recent, in.Revision)
		return
	}
	if s.recent == nil || len(s.recent) >= kept {
		s.recent = map[string]answered{}
	}
	s.recent[in.Revision] = answered{in.Packages, in.Applied, in.Installed, in.Images, at}
}

// errOffline is the error for content that is only in a registry.
var errOffline = errors.New("it is not in the cache, and no registry is asked")
