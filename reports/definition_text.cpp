#include "reports/definition_text.h"

#include <yaml-cpp/yaml.h>

#include "questions/conditions.h"

namespace petlab::reports {
namespace {

using YAML::Emitter;

// These write map entries that differ from their defaults. Texts are quoted so that they are not
// read as numbers.
void text(Emitter& out, const char* key, const std::string& value) {
  if (!value.empty()) out << YAML::Key << key << YAML::Value << YAML::DoubleQuoted << value;
}

void texts(Emitter& out, const char* key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginSeq;
  for (const std::string& value : values) out << YAML::DoubleQuoted << value;
  out << YAML::EndSeq;
}

void where(Emitter& out, const Selection& selection) {
  text(out, "where", questions::where_text(selection.conditions));
}

void lines(Emitter& out, const char* key, const std::vector<Line>& all) {
  out << YAML::Key << key << YAML::Value << YAML::BeginSeq;
  for (const Line& line : all) {
    out << YAML::Flow << YAML::BeginMap;
    text(out, "key", line.key);
    texts(out, "each", line.each);
    if (line.name != line.key) text(out, "name", line.name);
    where(out, line.where);
    out << YAML::EndMap;
  }
  out << YAML::EndSeq;
}

void section(Emitter& out, const TableSpec& table) {
  out << YAML::Key << "table" << YAML::Value << YAML::BeginMap;
  if (table.cells.scale) {
    out << YAML::Key << "cells" << YAML::Value << YAML::Flow << YAML::BeginMap << YAML::Key
        << "scale" << YAML::Value << *table.cells.scale << YAML::EndMap;
  }
  text(out, "against", table.against);
  lines(out, "rows", table.rows);
  lines(out, "columns", table.columns);
  out << YAML::EndMap;
}

void axis(Emitter& out, const char* key, const FigureAxis& axis) {
  out << YAML::Key << key << YAML::Value << YAML::Flow << YAML::BeginMap;
  text(out, "name", axis.name);
  text(out, "value", axis.cells.value.value_or(""));
  where(out, axis.where);
  if (axis.log) out << YAML::Key << "log" << YAML::Value << true;
  out << YAML::EndMap;
}

void section(Emitter& out, const FigureSpec& figure) {
  out << YAML::Key << "figure" << YAML::Value << YAML::BeginMap;
  text(out, "title", figure.title);
  axis(out, "x", figure.x);
  axis(out, "y", figure.y);
  std::vector<Line> series;
  for (const SeriesSpec& one : figure.series) series.push_back(one.line);
  lines(out, "series", series);
  out << YAML::EndMap;
}

void section(Emitter& out, const RanksSpec& ranks) {
  out << YAML::Key << "ranks" << YAML::Value << YAML::BeginMap;
  text(out, "key", ranks.key);
  text(out, "title", ranks.title);
  out << YAML::Key << "level" << YAML::Value << ranks.level;
  lines(out, "variants", ranks.variants);
  lines(out, "tasks", ranks.tasks);
  out << YAML::EndMap;
}

}  // namespace

std::string to_yaml(const Definition& definition) {
  Emitter out;
  out << YAML::BeginMap;
  text(out, "report", definition.name);
  text(out, "about", definition.about);
  texts(out, "sweep", definition.sweeps);
  where(out, definition.where);
  const auto write = [&](const SectionSpec& spec) {
    std::visit([&](const auto& one) { section(out, one); }, spec);
  };
  if (definition.sections.size() == 1) {
    write(definition.sections.front());
  } else {
    out << YAML::Key << "sections" << YAML::Value << YAML::BeginSeq;
    for (const SectionSpec& spec : definition.sections) {
      out << YAML::BeginMap;
      write(spec);
      out << YAML::EndMap;
    }
    out << YAML::EndSeq;
  }
  out << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace petlab::reports
