package plan

// A Kind is a kind that the API server serves.
type Kind struct {
	Version    string   // preferred
	Versions   []string // served
	Resource   string   // plural
	Namespaced bool
	Categories []string
}
