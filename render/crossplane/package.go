package crossplane

import (
	"path"
	"strings"

	"headgate.dev/headgate/render/manifest"
)

// IsDigest reports whether the version of a package is the digest of an image and not a tag.
func IsDigest(version string) bool {
	hash, ok := strings.CutPrefix(version, "sha256:")
	return ok && len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == ""
}

// Image joins a source and a version as in spec.package.
func Image(source, version string) string {
	if strings.Contains(version, ":") {
		return source + "@" + version
	}
	return source + ":" + version
}

// SplitImage splits the value of spec.package into source and version. If it has a tag and a digest, the version is the digest.
func SplitImage(image string) (source, version string) {
	source, digest, _ := strings.Cut(strings.TrimSpace(image), "@")
	if i := strings.LastIndexByte(source, ':'); i > strings.LastIndexByte(source, '/') {
		source, version = source[:i], source[i+1:]
	}
	if digest != "" {
		version = digest
	}
	return source, version
}

// ImageName returns the last part of the repository of an image: "provider-aws" of
// "registry.example.org/upbound/provider-aws:v1.2.3".
func ImageName(image string) string {
	source, _ := SplitImage(image)
	return path.Base(source)
}

// DependencyName returns the name of the object that Crossplane creates for a dependency.
func DependencyName(source string) string {
	_, repository, ok := strings.Cut(source, "/")
	if !ok {
		repository = source
	}
	repository = repository[:min(len(repository), 63)]
	var b strings.Builder
	for i := range len(repository) {
		switch c := repository[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			b.WriteByte(c)
		case strings.IndexByte("./:-", c) >= 0 && i != 0 && i != 62 && i != len(repository)-1:
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}

// IsMetadata reports whether an object is the metadata of a package, in a version that Crossplane reads.
func IsMetadata(id manifest.ID, version string) bool {
	switch {
	case id.Group != Metadata:
		return false
	case id.Kind == Provider, id.Kind == Configuration:
		return version == "v1" || version == "v1alpha1"
	}
	return id.Kind == Function && (version == "v1" || version == "v1beta1")
}

// IsDevelopment reports whether the objects of a group are only for the command lines crossplane or up: projects, and tests of
// compositions. No API server serves them.
func IsDevelopment(group string) bool {
	return group == "dev.crossplane.io" || group == "meta.dev.upbound.io"
}

// IsSafeStart reports whether a capability of a provider package is safe-start. It compares letters and
// digits only, in any case, as Crossplane does.
func IsSafeStart(capability string) bool {
	plain := strings.Map(func(r rune) rune {
		switch {
		case '0' <= r && r <= '9', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			return r
		}
		return -1
	}, capability)
	return strings.EqualFold(plain, "safestart")
}

// Registries are those of Crossplane's and Upbound's packages.
var Registries = []string{"xpkg.crossplane.io", "xpkg.upbound.io"}
