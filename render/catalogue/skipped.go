package catalogue

// Skipped counts files and documents that are not applied, by reason.
type Skipped map[Why]int

// Why is the reason why a file or document is skipped, as text for users.
type Why string

// The reasons. Without a document, files are counted.
const (
	NotManifest  Why = "no Kubernetes manifest"
	LocalOnly    Why = "local configuration (config.kubernetes.io/local-config)"
	Hook         Why = "hook of Argo CD or Helm"
	Unsynced     Why = "not to be applied (argocd.argoproj.io/hook: Skip)"
	Described    Why = "connection details, which are never applied"
	OtherTool    Why = "object of Flux or Argo CD"
	Encrypted    Why = "encrypted with SOPS"
	Metadata     Why = "metadata of a package"
	Lock         Why = "lock of packages"
	NotInstalled Why = "not installed from a package"
	Installed    Why = "of a package that Crossplane installs"
	BuildInput   Why = "example, test or build input of a package"
	Kustomize    Why = "for kustomize, which builds it only where a kustomization names it"
	Ignored      Why = "listed in .headgateignore"
	Symlink      Why = "symbolic link"
	Submodule    Why = "submodule"
	Empty        Why = "empty file"
	ForProgram   Why = "for a program, and for no cluster"
	HelmTemplate Why = "template of a Helm chart"
	Placeholders Why = "template with placeholders, such as one of Terraform"
	Capitals     Why = "file name extension in capitals"
	Hidden       Why = "name that begins with a dot"
	OtherSuffix  Why = "file name with another extension after .yaml, .yml or .json"
	NotUTF8      Why = "file name that is not UTF-8"
)

// Surprises reports whether the author may have expected a skipped document to be applied.
func (w Why) Surprises() bool {
	switch w {
	case Hook, OtherTool, Encrypted, Symlink, Submodule, HelmTemplate, Placeholders, Capitals:
		return true
	}
	return false
}

// Add counts one more document or file.
func (s Skipped) Add(w Why) { s[w]++ }
