// Sets up a page that was just opened, or a new part of it.
petlab.enhance = (root) => {
  petlab.tables(root);
  petlab.figures(root);
};
petlab.enhance(document);
petlab.learningCurves();
