// Package sql holds Tidemark's SQL: tables in migrations/, which run once, and functions, triggers and views in code/,
// by subject, which are re-created when they change. Package migrate applies both, and the statements of roles.sql
// before them.
package sql

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

// Files holds migrations/*.sql and the folders of code/. A file of code/ makes one function, with its triggers, or one
// view, and has its name.
//
//go:embed migrations/*.sql code
var Files embed.FS

// A File of code/.
type File struct {
	Path string
	Text string
}

// Name is that of the function or view which the file makes.
func (f File) Name() string { return strings.TrimSuffix(path.Base(f.Path), ".sql") }

// Code reads the files of code/ in fsys, ordered by their paths.
func Code(fsys fs.FS) (files []File, err error) {
	err = fs.WalkDir(fsys, "code", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(fsys, path)
		files = append(files, File{path, string(text)})
		return err
	})
	return files, err
}

// Roles is a query for the statements that make Tidemark's roles, with their state in the database.
//
//go:embed roles.sql
var Roles string
