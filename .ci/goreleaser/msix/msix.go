// Package msix replaces go.digitalxero.dev/go-msix, which not every module proxy serves. GoReleaser packs MSIX for Windows with it,
// and Headgate has no such package. Every call fails.
package msix

import (
	"crypto"
	"crypto/x509"
	"errors"
	"io"
)

var errNone = errors.New("this GoReleaser packs no MSIX")

// GoReleaser fills in these types.
type (
	Builder struct {
		Manifest    Manifest
		SignOptions *SignOptions
	}
	Manifest struct {
		Identity     Identity
		Properties   Properties
		Dependencies Dependencies
		Resources    []Resource
		Applications []Application
		Capabilities Capabilities
	}
	Identity           struct{ Name, Version, Publisher, ProcessorArchitecture, ResourceID string }
	Properties         struct{ DisplayName, PublisherDisplayName, Logo, Description string }
	Dependencies       struct{ TargetDeviceFamilies []TargetDeviceFamily }
	TargetDeviceFamily struct{ Name, MinVersion, MaxVersionTested string }
	Resource           struct{ Language string }
	Application        struct {
		ID, Executable, EntryPoint string
		VisualElements             VisualElements
	}
	VisualElements struct {
		DisplayName, Description, BackgroundColor, Square150x150Logo, Square44x44Logo string
	}
	Capabilities struct {
		Capabilities       []Capability
		DeviceCapabilities []DeviceCapability
		Restricted         []RestrictedCapability
	}
	Capability           struct{ Name string }
	DeviceCapability     struct{ Name string }
	RestrictedCapability struct{ Name string }
	SignOptions          struct {
		Certificate *x509.Certificate
		PrivateKey  crypto.PrivateKey
		CertChain   []*x509.Certificate
	}
)

func NewBuilder() *Builder                 { return &Builder{} }
func (*Builder) AddFile(_, _ string) error { return errNone }
func (*Builder) Build(io.Writer) error     { return errNone }

func LoadPFX(_, _ string) (*x509.Certificate, crypto.PrivateKey, []*x509.Certificate, error) {
	return nil, nil, nil, errNone
}
