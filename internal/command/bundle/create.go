package bundle

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tidemarkhq/tidemark/internal/command"
)

//go:embed template
var template embed.FS

// Create writes a small bundle that lints into a new or empty folder, and returns its files.
func Create(dir, service string) (files []string, err error) {
	if problem := command.CheckService(service); problem != "" {
		return nil, errors.New("service " + problem)
	}
	there, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if len(there) > 0 {
		return nil, fmt.Errorf("%s is not empty: name another folder", dir)
	}
	names := strings.NewReplacer("SERVICE", service, "SCHEMA", strings.ReplaceAll(service, "-", "_"))
	err = fs.WalkDir(template, "template", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(strings.TrimPrefix(path, "template"), "/")
		to := filepath.Join(dir, filepath.FromSlash(name))
		if entry.IsDir() {
			return os.MkdirAll(to, 0o755) //nolint:gosec // a folder for version control, nothing secret
		}
		text, err := template.ReadFile(path)
		if err != nil {
			return err
		}
		files = append(files, name)
		return os.WriteFile(to, []byte(names.Replace(string(text))), 0o644) //nolint:gosec // as above
	})
	return files, err
}
